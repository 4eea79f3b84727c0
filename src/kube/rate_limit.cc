#include "kube/rate_limit.h"

#include <algorithm>

namespace edl::kube {

RateLimit::RateLimit(double per_second, int burst, const Clock& clock)
    : per_second_(per_second),
      burst_(burst),
      clock_(clock),
      tokens_(burst),
      filled_at_(clock.Now()) {}

void RateLimit::Refill() {
  const Time now = clock_.Now();
  const std::chrono::duration<double> passed = now - filled_at_;
  tokens_ = std::min(burst_, tokens_ + passed.count() * per_second_);
  filled_at_ = now;
}

Duration RateLimit::Take() {
  const MutexLock lock(mutex_);
  Refill();
  tokens_ -= 1;
  if (tokens_ >= 0) return Duration(0);
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(-tokens_ / per_second_));
}

bool RateLimit::TryTake() {
  const MutexLock lock(mutex_);
  Refill();
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace edl::kube
