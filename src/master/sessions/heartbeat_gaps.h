#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace edl::master {

// Measures the usual time between two calls of a live session: the 90th percentile of the gaps that
// were added in the last 30 to 60 seconds. MasterApi derives from it the silence after which a
// session is lost: where the CPU is overloaded, nearly all heartbeats are late, and a late
// heartbeat does not mean that its process is dead.
//
// Confined: call it on the master's loop.
class HeartbeatGaps {
 public:
  // A session has called, `gap` after its call before.
  void Add(Duration gap, Time now) {
    if (now - began_ >= kWindow) {
      last_ = now - began_ >= 2 * kWindow ? Counts{} : current_;
      current_ = {};
      began_ = now;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(gap).count();
    ++current_.at(static_cast<size_t>(std::clamp<int64_t>(seconds, 0, kMost - 1)));
  }

  // In whole seconds, at most 127. 0 if no gap was added.
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
