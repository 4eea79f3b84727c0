#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace edl::kube {

// A bucket of tokens: `burst` calls at once, then `per_second`.
//
// Thread-safe.
class RateLimit {
 public:
  RateLimit(double per_second, int burst, const Clock& clock);

  // Takes a token, perhaps one that comes later: the caller waits so long before it goes on.
  Duration Take();
  // Takes a token if there is one.
  bool TryTake();

 private:
  void Refill() REQUIRES(mutex_);

  const double per_second_;
  const double burst_;
  const Clock& clock_;

  Mutex mutex_;
  double tokens_ GUARDED_BY(mutex_);  // negative: promised to callers that wait
  Time filled_at_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
