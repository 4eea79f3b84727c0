#pragma once

#include <chrono>

#include "base/clock.h"

namespace edl {

// A clock that stands still until the test calls Advance. Confined to the test that owns it.
class FakeClock final : public Clock {
 public:
  Time Now() const override { return now_; }
  WallTime WallNow() const override { return WallTime(now_.time_since_epoch()); }
  void Advance(Duration by) { now_ += by; }

 private:
  Time now_{std::chrono::hours(24)};
};

}  // namespace edl
