#include "kube/backoff.h"

#include <algorithm>

namespace edl::kube {

Duration Backoff::Next() {
  const Time now = timing_.clock.Now();
  if (now - failed_at_ > limits_.forget_after) Reset();
  failed_at_ = now;
  next_ = next_ == Duration(0) ? limits_.first : std::min(next_ * 2, limits_.longest);
  return std::chrono::duration_cast<Duration>(next_ * (0.5 + timing_.chance() / 2));
}

}  // namespace edl::kube
