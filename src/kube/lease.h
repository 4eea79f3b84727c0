#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/timing.h"

namespace edl::kube {

struct LeaseOptions {
  ObjectKey key;
  // The holder. A process with the same identity takes the lease back immediately, so the identity
  // must belong to something unique, such as the uid of a pod.
  std::string identity;
  // Another process may take the lease this long after the last renewal.
  std::chrono::seconds duration{15};
  // held() becomes false this long after the last renewal. It is shorter than `duration`, so that
  // operations which the holder started can finish before another process takes the lease.
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry{2};  // between attempts, and between renewals
};

// A mutual-exclusion lock, stored as a Kubernetes Lease object. It does not compare clocks of
// different machines: another holder is considered dead after this process has seen no change of
// the object for its duration.
//
// Confined to the thread that acquires and renews it, except held().
class LeaseHolder {
 public:
  using OnWaiting = std::function<void(const std::string& holder)>;
  using OnError = std::function<void(const Status&)>;

  // REQUIRES: duration > renew_deadline > retry. `connection` outlives this.
  LeaseHolder(Connection& connection, const Timing& timing, LeaseOptions options);

  // Blocks until this process holds the lease, which takes as long as another holder renews it,
  // plus the duration of the lease. Calls `on_waiting` once for each other holder. Retries during
  // outages and while a permission is missing, and calls `on_error` when the error changes. Returns
  // an error that a retry cannot change.
  Status Acquire(const std::stop_token& stop, const OnWaiting& on_waiting = {},
                 const OnError& on_error = {});
  // Renews the lease until `stop` is requested, then returns Ok. While renewal fails, held() is
  // false after the renew deadline; it becomes true again after a renewal, if no other process had
  // the lease in between. Aborted: another process has or had the lease. REQUIRES: Acquire returned
  // Ok.
  Status Keep(const std::stop_token& stop, const OnError& on_error = {});
  // Releases the lease, so that the next holder need not wait for its expiry. Ok if this process
  // does not hold it.
  Status Release();

  // Whether no other process can hold the lease now. Check it before every operation that only the
  // holder may do. Thread-safe.
  bool held() const;

 private:
  struct Outcome {
    bool ours = false;
    std::string holder;  // if not ours: the holder; empty: another process was faster, try again
    int64_t transitions = 0;  // if ours: how often the holder has changed
  };

  // Attempts once to acquire or renew the lease.
  Result<Outcome> Try(const std::stop_token& stop);
  Result<Outcome> Create(const std::stop_token& stop);
  Result<Outcome> Take(Object lease, const std::stop_token& stop);
  // Records when this process saw the object change.
  void Observe(const Object& lease);
  bool Expired(const Object& lease) const;
  void SetHeldUntil(Time time);

  const LeaseOptions options_;
  const Timing timing_;
  Client client_;  // one attempt per call: this class does the waiting

  std::string observed_version_;
  Time observed_at_;
  int64_t transitions_ = 0;  // of the object when this process last held it

  mutable Mutex mutex_;
  Time held_until_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
