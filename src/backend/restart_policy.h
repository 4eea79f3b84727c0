#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace edl::backend {

// When to start the master again after a signal ended it: at once, unless it keeps dying within
// seconds of its start. Confined.
class RestartPolicy {
 public:
  static constexpr std::chrono::seconds kFullLife{5};
  static constexpr int kMostShortLives = 10;

  // How long to wait before the next start. None: give up.
  std::optional<Duration> OnDeath(Duration lived) {
    if (lived >= kFullLife) short_lives_ = 0;
    if (++short_lives_ >= kMostShortLives) return std::nullopt;
    constexpr int kAtOnce = 3;
    if (short_lives_ <= kAtOnce) return Duration::zero();
    const int doublings = std::min(short_lives_ - kAtOnce - 1, 2);
    return std::chrono::milliseconds(100 << doublings);
  }

 private:
  int short_lives_ = 0;
};

}  // namespace edl::backend
