#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/mutex.h"
#include "base/status.h"
#include "kube/byte_stream.h"
#include "kube/call_options.h"
#include "kube/connection.h"
#include "kube/object.h"
#include "kube/rate_limit.h"
#include "kube/resource.h"
#include "kube/timing.h"
#include "kube/watch_stream.h"

namespace edl::kube {

struct ObjectList {
  std::vector<Object> items;
  std::string resource_version;  // to watch from
};

struct ClientOptions {
  double calls_per_second = 50;
  int burst = 100;
  // Limit of one try, from the call to the last byte. Streams have none.
  std::chrono::milliseconds timeout{30'000};
  // How often a call is made at most, and after how long it is not made again.
  int tries = 10;
  std::chrono::milliseconds retry_timeout{60'000};
  int page_size = 500;  // of lists
  // Of DeleteMany, where the server does the work of many calls.
  std::chrono::milliseconds many_timeout{60'000};
};

// The verbs of the API, for any kind of object.
//
// Every failure is a status in the codes of kube/api_status.h or, where no answer came, in those of
// Transport; its message names the verb, the object and, where there is one, the way out.
//
// A call is made again while the server is overloaded (429, or an error with Retry-After) and, if
// making it twice does no harm, when the connection broke or a server in between failed. Waits grow
// from 100 ms to 5 s unless the server says how long. What may be made twice:
//   Get, List, Delete          always; what only asks (ServerVersion, CanI, CanAccount) too.
//   Create of a fixed name     so AlreadyExists may mean that an earlier try arrived: a caller
//   reads
//                              the object and compares its owner.
//   Update                     so Aborted may mean that an earlier try arrived: a caller reads the
//                              object again, as it does after any Aborted.
//   Patch                      all but kJson.
//
// Blocks. Thread-safe.
class Client {
 public:
  // `connection` outlives this.
  Client(Connection& connection, Timing timing, ClientOptions options = {});

  const Config& config() const { return connection_.config(); }

  Result<Object> Get(const Resource& resource, const ObjectKey& key,
                     const std::stop_token& stop = {});
  // All pages, of the most recent state. An empty `ns`: of all of them. Each item says its
  // kind, which the server leaves out.
  Result<ObjectList> List(const Resource& resource, const std::string& ns,
                          const Selector& selector = {}, const std::stop_token& stop = {});
  // The object as the server has made it. Its namespace, if it has none, is the kubeconfig's.
  Result<Object> Create(const Resource& resource, const Object& object,
                        const std::stop_token& stop = {});
  // As Create, up to the point where it would be kept: whether the server would take it.
  Result<Object> CreateDryRun(const Resource& resource, const Object& object,
                              const std::stop_token& stop = {});
  // Replaces the object, if it still is of the resource version that `object` has. Aborted: it is
  // not. The main object's status stays as it is.
  Result<Object> Update(const Resource& resource, const Object& object,
                        const std::stop_token& stop = {});
  // Replaces the status, and for most kinds labels and annotations too; never the spec.
  Result<Object> UpdateStatus(const Resource& resource, const Object& object,
                              const std::stop_token& stop = {});
  Result<Object> Patch(const Resource& resource, const ObjectKey& key, const nlohmann::json& patch,
                       const PatchOptions& options = {}, const std::stop_token& stop = {});
  // Ok if there is none. The object may stay for its grace, or for its finalizers.
  Status Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options = {},
                const std::stop_token& stop = {});
  // Deletes all that are selected, with one call. The server takes its time for many: what a call
  // that timed out left is deleted by the next.
  Status DeleteMany(const Resource& resource, const std::string& ns, const Selector& selector,
                    const DeleteOptions& options = {}, const std::stop_token& stop = {});

  // Returns before the server has answered: whether it refuses is what the first event says. One
  // try. The stream outlives neither this client nor its connection.
  Result<std::unique_ptr<WatchStream>> Watch(const Resource& resource, const std::string& ns,
                                             const WatchOptions& options,
                                             const std::stop_token& stop = {});

  // InvalidArgument: the container has not started yet, or there are several and none is named.
  Result<std::string> Log(const ObjectKey& pod, const LogOptions& options = {},
                          const std::stop_token& stop = {});
  // Goes on as the container writes, and ends when it does. As Watch otherwise.
  Result<std::unique_ptr<ByteStream>> FollowLog(const ObjectKey& pod,
                                                const LogOptions& options = {},
                                                const std::stop_token& stop = {});

  // "v1.29.3"; "" where the server does not say.
  Result<std::string> ServerVersion(const std::stop_token& stop = {});
  // Whether the caller may.
  Result<AccessAnswer> CanI(const Access& access, const std::stop_token& stop = {});
  // Whether a service account may, in its own namespace. PermissionDenied: the caller may not ask.
  // REQUIRES: `access` is of that namespace.
  Result<AccessAnswer> CanAccount(const ObjectKey& account, const Access& access,
                                  const std::stop_token& stop = {});

 private:
  struct Call;

  Result<Response> Send(const Call& call, const std::stop_token& stop);
  Result<Object> SendForObject(const Call& call, const std::stop_token& stop);
  Result<Object> Post(const Resource& resource, const Object& object, const std::string& query,
                      const std::stop_token& stop);
  Result<Object> Put(const Resource& resource, const Object& object, const std::string& subresource,
                     const std::stop_token& stop);
  // Makes a review, which is answered and not kept.
  Result<AccessAnswer> Ask(const Resource& review, const std::string& ns, nlohmann::json spec,
                           const Access& access, const std::stop_token& stop);
  Result<ObjectList> ListOnce(const Resource& resource, const std::string& ns,
                              const Selector& selector, const std::stop_token& stop);
  Result<std::unique_ptr<ByteStream>> Open(Request request, const std::stop_token& stop);
  // Waits for its turn.
  Status AwaitRateLimit(const std::stop_token& stop);
  // How long to wait before a call is made again; nullopt: it is not.
  std::optional<Duration> RetryIn(const Call& call, const Result<Response>& answer,
                                  int tries) const;
  void LogWarnings(const std::vector<std::string>& warnings);
  Status Explain(const Call& call, const Result<Response>& answer) const;

  Connection& connection_;
  const Timing timing_;
  const ClientOptions options_;
  RateLimit limit_;

  Mutex mutex_;
  std::set<std::string> warned_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
