#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace edl::master {

// How far apart the signs of life of live sessions are: the 90th percentile of the last half to
// whole minute, in whole seconds. Where machines are starved of CPU, the heartbeats of nearly all
// sessions are late, and one that is late means less.
//
// Confined: call it on the master's loop.
class HeartbeatGaps {
 public:
  void Add(Duration gap, Time now) {
    if (now - began_ >= kWindow) {
      last_ = now - began_ >= 2 * kWindow ? Counts{} : current_;
      current_ = {};
      began_ = now;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(gap).count();
    ++current_.at(static_cast<size_t>(std::clamp<int64_t>(seconds, 0, kMost - 1)));
  }

  Duration Usual() const {
    int64_t all = 0;
    for (size_t i = 0; i < kMost; ++i) all += current_.at(i) + last_.at(i);
    int64_t below = 0;
    for (size_t i = 0; i < kMost; ++i) {
      below += current_.at(i) + last_.at(i);
      if (below * 10 >= all * 9) return std::chrono::seconds(i);
    }
    return Duration::zero();
  }

 private:
  static constexpr Duration kWindow = std::chrono::seconds(30);
  static constexpr size_t kMost = 128;
  using Counts = std::array<int64_t, kMost>;

  Time began_;
  Counts current_{};
  Counts last_{};
};

}  // namespace edl::master
