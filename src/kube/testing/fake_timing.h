#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/testing/fake_clock.h"
#include "kube/timing.h"

namespace edl::kube {

// A Timing whose waits return immediately and advance the clock instead; its random number is
// constant.
//
// Confined to the thread of the test, as is everything that uses it.
class FakeTiming {
 public:
  Timing timing() {
    return {clock_,
            [this](Duration duration, const std::stop_token& stop) {
              if (stop.stop_requested()) return false;
              waits_.push_back(duration);
              clock_.Advance(duration);
              if (on_wait_) on_wait_();
              return !stop.stop_requested();
            },
            [this] { return chance_; }};
  }

  FakeClock& clock() { return clock_; }
  const std::vector<Duration>& waits() const { return waits_; }
  // Called in each wait.
  void set_on_wait(std::function<void()> on_wait) { on_wait_ = std::move(on_wait); }
  void set_chance(double chance) { chance_ = chance; }

 private:
  FakeClock clock_;
  std::vector<Duration> waits_;
  std::function<void()> on_wait_;
  double chance_ = 0;
};

}  // namespace edl::kube
