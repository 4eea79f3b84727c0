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
  // Who holds it. Whoever comes with the same identity takes it back at once, so it belongs to
  // something that there cannot be two of, such as a pod's uid.
  std::string identity;
  // So long after the last sign of life, somebody else may take it.
  std::chrono::seconds duration{15};
  // So long without a renewal, and it is lost: sooner than anybody else may take it, so that what
  // the holder began before has an end.
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry{2};
};

// A right that one at a time has, kept as a Lease object. No clocks are compared: whether another
// holder is dead is judged by how long this process has seen no change of the object.
//
// Confined to the thread that acquires and keeps it, but for held().
class LeaseHolder {
 public:
  using OnWaiting = std::function<void(const std::string& holder)>;
  using OnTrouble = std::function<void(const Status&)>;

  // REQUIRES: duration > renew_deadline > retry. `connection` outlives this.
  LeaseHolder(Connection& connection, const Timing& timing, LeaseOptions options);

  // Blocks until this holds it: as long as another shows signs of life, and then for its duration.
  // `on_waiting` is told whom it waits for, once for each. Waits outages and missing permissions
  // out, and tells them to `on_trouble` when they change; a refusal that asking again will not
  // change is returned.
  Status Acquire(const std::stop_token& stop, const OnWaiting& on_waiting = {},
                 const OnTrouble& on_trouble = {});
  // Blocks and renews it until told to stop: Ok. While it cannot be renewed, held() is false after
  // the renew deadline; it is true again once it was renewed and nobody else had it in between.
  // Aborted: another has it, or had it.
  // REQUIRES: Acquire returned Ok.
  Status Keep(const std::stop_token& stop, const OnTrouble& on_trouble = {});
  // Gives it back, so that the next one need not wait. Ok if this does not hold it.
  Status Release();

  // Whether nobody else can have it now: for whoever is about to do what only the holder may.
  // Thread-safe.
  bool held() const;

 private:
  struct Outcome {
    bool ours = false;
    std::string holder;       // not ours: who has it; empty: somebody was faster, ask again
    int64_t transitions = 0;  // ours: how often it has changed hands
  };

  // One attempt to get or renew it.
  Result<Outcome> Try(const std::stop_token& stop);
  Result<Outcome> Create(const std::stop_token& stop);
  Result<Outcome> Take(Object lease, const std::stop_token& stop);
  // Notes when the object changed, as far as this process can see.
  void Observe(const Object& lease);
  bool Expired(const Object& lease) const;
  void SetHeldUntil(Time time);

  const LeaseOptions options_;
  const Timing timing_;
  Client client_;  // of one try: the waiting is done here

  std::string observed_version_;
  Time observed_at_;
  int64_t transitions_ = 0;  // of the object when this held it last

  mutable Mutex mutex_;
  Time held_until_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
