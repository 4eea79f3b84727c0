#pragma once

#include <chrono>
#include <optional>

#include "base/backoff.h"

namespace edl::backend {

// Decides when to restart a master that was killed by a signal: immediately, unless it keeps dying
// within seconds of its start. Confined.
class RestartPolicy {
 public:
  static constexpr std::chrono::seconds kStableAfter{5};
  static constexpr int kMaxEarlyDeaths = 10;

  // How long to wait before the next start; nullopt: do not restart any more.
  std::optional<Duration> OnDeath(Duration ran_for) {
    if (ran_for >= kStableAfter) early_deaths_ = 0;
    if (++early_deaths_ >= kMaxEarlyDeaths) return std::nullopt;
    constexpr int kImmediately = 3;
    constexpr BackoffLimits kLimits{.first = std::chrono::milliseconds(100),
                                    .longest = std::chrono::milliseconds(400)};
    return kLimits.After(early_deaths_ - kImmediately);
  }

 private:
  int early_deaths_ = 0;
};

}  // namespace edl::backend
