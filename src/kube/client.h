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
  std::string resource_version;  // where a watch continues
};

struct ClientOptions {
  double calls_per_second = 50;
  int burst = 100;
  // Timeout of one attempt, from the request to the last byte. Streams have no timeout.
  std::chrono::milliseconds timeout{30'000};
  // Maximum number of attempts per call, and the time after which a call is not repeated.
  int tries = 10;
  std::chrono::milliseconds retry_timeout{60'000};
  int page_size = 500;  // objects per page of a list
  // Removes what the caller does not need from each listed object, before the next page is read.
  std::function<void(Object&)> reduce = {};
  // Checked before each attempt of a call that writes. If it returns false, the call fails with
  // Cancelled: the caller has lost the right to write since it began. Empty: no check.
  std::function<bool()> may_write = {};
  // Timeout of DeleteMany, for which the server does the work of many calls.
  std::chrono::milliseconds delete_many_timeout{60'000};
};

// Calls the Kubernetes API, for any kind of object.
//
// Errors have the codes of kube/api_status.h or, if no response arrived, those of Transport. The
// message names the verb, the object and, where there is a remedy, what the user can do.
//
// A call is repeated while the server is overloaded (429, or an error with Retry-After). A call
// that may safely be repeated is also repeated after a broken connection or an error of a proxy.
// The delay grows from 100 ms to 5 s unless the server specifies one. Calls that may be repeated:
//   Get, List, Delete          always; so are ServerVersion, CanI and CanAccount.
//   Create of a fixed name     AlreadyExists may mean that an earlier attempt succeeded: the caller
//                              reads the object and compares its owner.
//   Update                     Aborted may mean that an earlier attempt succeeded: the caller reads
//                              the object again, as after any Aborted.
//   Patch                      all types except kJson.
//
// Blocks. Thread-safe.
class Client {
 public:
  // `connection` outlives this.
  Client(Connection& connection, Timing timing, ClientOptions options = {});

  const Config& config() const { return connection_.config(); }

  Result<Object> Get(const Resource& resource, const ObjectKey& key,
                     const std::stop_token& stop = {});
  // Returns all pages of the most recent state. An empty `ns` lists all namespaces. Sets the kind
  // of each item, which the server omits in lists.
  Result<ObjectList> List(const Resource& resource, const std::string& ns,
                          const Selector& selector = {}, const std::stop_token& stop = {});
  // Returns the object as the server stored it. An object without a namespace is created in that of
  // the kubeconfig.
  Result<Object> Create(const Resource& resource, const Object& object,
                        const std::stop_token& stop = {});
  // Validates and admits the object like Create, but does not store it.
  Result<Object> CreateDryRun(const Resource& resource, const Object& object,
                              const std::stop_token& stop = {});
  // Replaces the object, except its status. Aborted: the stored resource version differs from that
  // of `object`.
  Result<Object> Update(const Resource& resource, const Object& object,
                        const std::stop_token& stop = {});
  // Replaces the status and, for most kinds, labels and annotations; never the spec.
  Result<Object> UpdateStatus(const Resource& resource, const Object& object,
                              const std::stop_token& stop = {});
  Result<Object> Patch(const Resource& resource, const ObjectKey& key, const nlohmann::json& patch,
                       const PatchOptions& options = {}, const std::stop_token& stop = {});
  // Returns Ok if the object does not exist. The object may remain for its grace period or until
  // its finalizers are removed.
  Status Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options = {},
                const std::stop_token& stop = {});
  // The same, but returns NotFound if the object does not exist. After a broken connection, that
  // may be because an earlier attempt of the same call succeeded.
  Status DeleteExisting(const Resource& resource, const ObjectKey& key,
                        const DeleteOptions& options = {}, const std::stop_token& stop = {});
  // Deletes all selected objects with one call. If the call times out, objects may be left; call it
  // again.
  Status DeleteMany(const Resource& resource, const std::string& ns, const Selector& selector,
                    const DeleteOptions& options = {}, const std::stop_token& stop = {});

  // Returns before the server responds; the first event reports an error of the server. Does not
  // retry. The client and its connection outlive the stream.
  Result<std::unique_ptr<WatchStream>> Watch(const Resource& resource, const std::string& ns,
                                             const WatchOptions& options,
                                             const std::stop_token& stop = {});

  // InvalidArgument: the container has not started yet, or the pod has several containers and
  // `options` names none.
  Result<std::string> Log(const ObjectKey& pod, const LogOptions& options = {},
                          const std::stop_token& stop = {});
  // Streams the log until the container ends. Otherwise like Watch.
  Result<std::unique_ptr<ByteStream>> FollowLog(const ObjectKey& pod,
                                                const LogOptions& options = {},
                                                const std::stop_token& stop = {});

  // Returns for example "v1.29.3"; "" if the server does not report a version.
  Result<std::string> ServerVersion(const std::stop_token& stop = {});
  // Whether the caller is allowed to do this (SelfSubjectAccessReview).
  Result<AccessAnswer> CanI(const Access& access, const std::stop_token& stop = {});
  // Whether a service account is allowed to do this in its own namespace
  // (LocalSubjectAccessReview). PermissionDenied: the caller may not create such reviews. REQUIRES:
  // `access.ns` is the namespace of the account.
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
  // Creates a review object, which the server answers and does not store.
  Result<AccessAnswer> Review(const Resource& kind, const std::string& ns, nlohmann::json spec,
                              const Access& access, const std::stop_token& stop);
  Result<ObjectList> ListOnce(const Resource& resource, const std::string& ns,
                              const Selector& selector, const std::stop_token& stop);
  Result<std::unique_ptr<ByteStream>> Open(Request request, const std::stop_token& stop);
  // Blocks until the rate limit admits a call.
  Status AwaitRateLimit(const std::stop_token& stop);
  // How long to wait before the next attempt; nullopt: do not repeat the call.
  std::optional<Duration> RetryDelay(const Call& call, const Result<Response>& answer,
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
