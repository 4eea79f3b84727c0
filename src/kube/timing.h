#pragma once

#include <functional>
#include <stop_token>

#include "base/clock.h"

namespace edl::kube {

// The clock, the waiting and the randomness of this module, injected so that a test controls them.
// Thread-safe.
struct Timing {
  const Clock& clock;  // outlives this and its copies
  // Waits for the duration. Returns false if the token was stopped before that.
  std::function<bool(Duration, const std::stop_token&)> wait;
  // Returns a random number in [0, 1).
  std::function<double()> chance;
};

Timing RealTiming(const Clock& clock);

// A clock that also advances while the machine is suspended, unlike the monotonic clock: for
// leases, which other machines see expire in that time.
class BootClock final : public Clock {
 public:
  Time Now() const override;
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }
};

}  // namespace edl::kube
