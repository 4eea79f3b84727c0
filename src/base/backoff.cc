#include "base/backoff.h"

#include <algorithm>

namespace edl {

Duration BackoffLimits::After(int failures) const {
  Duration wait(0);
  for (; failures > 0 && wait < longest; --failures) wait = Following(wait);
  return wait;
}

Duration BackoffLimits::Following(Duration previous) const {
  if (previous <= Duration(0)) return std::min(first, longest);
  return previous > longest / 2 ? longest : previous * 2;
}

Duration WithJitter(Duration wait, double chance) {
  return std::chrono::duration_cast<Duration>(wait * (0.5 + chance / 2));
}

Duration Backoff::Next() {
  const Time now = clock_.Now();
  if (now - failed_at_ > kForgetAfter) Reset();
  failed_at_ = now;
  wait_ = limits_.Following(wait_);
  return WithJitter(wait_, chance_());
}

}  // namespace edl
