#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "kube/config.h"
#include "kube/object.h"
#include "kube/resource.h"
#include "kube/testing/http_server.h"
#include "kube/testing/object_store.h"

namespace edl::kube {

// An API server in this process: keeps objects, serves lists and watches, and misbehaves on demand.
//
// Thread-safe.
class ApiServer {
 public:
  // How one answer goes wrong.
  struct Fault {
    enum class Kind {
      kAnswer,  // this answer instead of its own
      kBreak,   // the connection breaks in the middle of the answer
      kSilent,  // nothing comes, and the connection stays
    };
    Kind kind = Kind::kAnswer;
    std::string part;  // of "METHOD /path?query": only what is asked with this in it; empty: all
    int times = 1;
    int status = 500;
    std::string body = {};
    std::string headers = {};
  };

  ApiServer();
  ~ApiServer();

  Config config() const;

  // What others do: the object is so from now on, or is no more.
  Object Put(const Resource& resource, const Object& object);
  void Remove(const Resource& resource, const ObjectKey& key);
  // The same, and no watch hears of it.
  void RemoveUnseen(const Resource& resource, const ObjectKey& key);
  // NotFound: it is not there.
  Result<Object> Get(const Resource& resource, const ObjectKey& key);
  void SetLog(const ObjectKey& pod, const std::string& text);
  // From now on reviews say that this user, or for "" the caller, may not "create pods" or
  // "get pods/log". Nobody is kept from it.
  void Deny(const std::string& user, const std::string& act);

  void Inject(Fault fault);
  // Sends watches byte by byte.
  void SplitFrames();
  // Forgets all versions: a watch or a list that would go on from an older one is refused with 410.
  void Compact();
  // Running watches send a bookmark; end; break; tell that they are too old, and end.
  void BookmarkWatches();
  void EndWatches();
  void BreakWatches();
  void ExpireWatches();

  // What was asked: "GET /api/v1/pods?limit=500".
  std::vector<std::string> requests();
  // How often something with this in it was asked.
  int CountRequests(const std::string& part);
  // Returns when it was asked so often; ends the test program after a minute.
  void AwaitRequests(const std::string& part, int count);

 private:
  enum class Order { kBookmark, kEnd, kBreak, kExpire };
  struct Target;
  struct Watching;

  static Target Parse(const std::string& text);
  void Serve(const ServedRequest& request, ServedConnection& connection);
  bool Misbehave(const ServedRequest& request, ServedConnection& connection);
  StoreReply Answer(const ServedRequest& request, const Target& target);
  void ServeLog(const Target& target, ServedConnection& connection);
  void ServeWatch(const Target& target, ServedConnection& connection);
  // What is to be sent next; false: the watch is over.
  bool NextFrames(Watching& watching, std::string& frames);
  void Tell(Order order);
  int Count(const std::string& part) const REQUIRES(mutex_);
  StoreReply Review(nlohmann::json review) const REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  ObjectStore store_ GUARDED_BY(mutex_);
  std::map<ObjectKey, std::string> logs_ GUARDED_BY(mutex_);
  std::set<std::pair<std::string, std::string>> denied_ GUARDED_BY(mutex_);  // user, act
  std::deque<Fault> faults_ GUARDED_BY(mutex_);
  std::vector<Order> orders_ GUARDED_BY(mutex_);  // all that were ever given to watches
  std::vector<std::string> requests_ GUARDED_BY(mutex_);
  bool split_frames_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;

  HttpServer server_;  // last: its threads use all of the above
};

}  // namespace edl::kube
