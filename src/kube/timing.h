#pragma once

#include <functional>
#include <stop_token>

#include "base/clock.h"

namespace edl::kube {

// Time and chance for what waits: handed in, so that a test decides how long a wait takes.
// Thread-safe.
struct Timing {
  const Clock& clock;  // outlives whoever has this
  // Waits. False: told to stop before the time was over.
  std::function<bool(Duration, const std::stop_token&)> wait;
  // A number in [0, 1), another one each time.
  std::function<double()> chance;
};

Timing RealTiming(const Clock& clock);

// Goes on while the machine is suspended, which a monotonic clock does not: for rights that expire
// elsewhere meanwhile.
class BootClock final : public Clock {
 public:
  Time Now() const override;
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }
};

}  // namespace edl::kube
