#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace edl::kube {

// A token bucket: admits `burst` calls immediately, then `per_second`.
//
// Thread-safe.
class RateLimit {
 public:
  RateLimit(double per_second, int burst, const Clock& clock);

  // Takes a token and returns how long the caller must wait before it may proceed.
  Duration Take();
  // Takes a token and returns true, or returns false if none is available.
  bool TryTake();

 private:
  void Refill() REQUIRES(mutex_);

  const double per_second_;
  const double burst_;
  const Clock& clock_;

  Mutex mutex_;
  double tokens_ GUARDED_BY(mutex_);  // negative: reserved by callers that wait
  Time filled_at_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
