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

// An API server in this process: stores objects, serves lists and watches, and injects faults on
// demand.
//
// Thread-safe.
class ApiServer {
 public:
  // A fault in one answer.
  struct Fault {
    enum class Kind {
      kAnswer,  // sends this answer instead of the real one
      kBreak,   // breaks the connection in the middle of the answer
      kSilent,  // sends nothing and keeps the connection open
      kLost,    // carries out the request, and breaks the connection in the middle of the answer
    };
    Kind kind = Kind::kAnswer;
    std::string part;  // substring of "METHOD /path?query"; empty: every request
    int times = 1;
    int status = 500;
    std::string body = {};
    std::string headers = {};
  };

  ApiServer();
  ~ApiServer();

  Config config() const;

  // Changes made by other clients: store or delete an object unconditionally.
  Object Put(const Resource& resource, const Object& object);
  void Remove(const Resource& resource, const ObjectKey& key);
  // Deletes the object without notifying watches.
  void RemoveUnseen(const Resource& resource, const ObjectKey& key);
  // NotFound: the object does not exist.
  Result<Object> Get(const Resource& resource, const ObjectKey& key);
  void SetLog(const ObjectKey& pod, const std::string& text);
  // From now on, access reviews deny this user ("" is the caller) an action such as "create pods"
  // or "get pods/log". The server does not enforce it.
  void Deny(const std::string& user, const std::string& act);

  void Inject(Fault fault);
  // Sends the bytes of watches one by one.
  void SplitFrames();
  // Forgets all versions: a watch or list that would continue from an older one fails with 410.
  void Compact();
  // Makes the running watches send a bookmark, end, break, or report 410 and end.
  void BookmarkWatches();
  void EndWatches();
  void BreakWatches();
  void ExpireWatches();

  // The requests so far: "GET /api/v1/pods?limit=500".
  std::vector<std::string> requests();
  // The number of requests that contain `part`.
  int CountRequests(const std::string& part);
  // Blocks until `count` requests contain `part`. Fails the test after a minute.
  void AwaitRequests(const std::string& part, int count);

 private:
  enum class WatchCommand { kBookmark, kEnd, kBreak, kExpire };
  struct Target;
  struct Watching;

  static Target Parse(const std::string& text);
  void Serve(const ServedRequest& request, ServedConnection& connection);
  bool Misbehave(const ServedRequest& request, ServedConnection& connection);
  StoreReply Answer(const ServedRequest& request, const Target& target);
  void ServeLog(const Target& target, ServedConnection& connection);
  void ServeWatch(const Target& target, ServedConnection& connection);
  // Sets `frames` to what the watch sends next. Returns false when the watch is over.
  bool NextFrames(Watching& watching, std::string& frames);
  void Command(WatchCommand command);
  int Count(const std::string& part) const REQUIRES(mutex_);
  StoreReply Review(nlohmann::json review) const REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  ObjectStore store_ GUARDED_BY(mutex_);
  std::map<ObjectKey, std::string> logs_ GUARDED_BY(mutex_);
  std::set<std::pair<std::string, std::string>> denied_ GUARDED_BY(mutex_);  // user, act
  std::deque<Fault> faults_ GUARDED_BY(mutex_);
  std::vector<WatchCommand> commands_ GUARDED_BY(mutex_);  // all so far
  std::vector<std::string> requests_ GUARDED_BY(mutex_);
  bool split_frames_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;

  HttpServer server_;  // last: its threads use all of the above
};

}  // namespace edl::kube
