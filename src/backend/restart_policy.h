#pragma once

#include <chrono>
#include <optional>

#include "base/backoff.h"

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
    constexpr BackoffLimits kLimits{.first = std::chrono::milliseconds(100),
                                    .longest = std::chrono::milliseconds(400)};
    return kLimits.After(short_lives_ - kAtOnce);
  }

 private:
  int short_lives_ = 0;
};

}  // namespace edl::backend
