#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/clock.h"

namespace edl::master {

// The usual time of a shard: the 95th percentile of the last 256. A single slow shard has no
// effect, and the value follows a job that becomes slower.
//
// Confined: call it on the master's loop.
class ShardTimes {
 public:
  void Add(Duration time) {
    times_.at(added_++ % times_.size()) = time;
    if (added_ <= kEvery || added_ % kEvery == 0) Refresh();
  }
  bool empty() const { return added_ == 0; }
  // Updated every few shards. Zero if no shard was added.
  Duration Typical() const { return typical_; }

 private:
  static constexpr size_t kEvery = 16;

  void Refresh() {
    auto sorted = times_;
    const size_t count = std::min(added_, sorted.size());
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(count * 95 / 100);
    std::nth_element(sorted.begin(), at, sorted.begin() + static_cast<std::ptrdiff_t>(count));
    typical_ = *at;
  }

  std::array<Duration, 256> times_{};
  size_t added_ = 0;
  Duration typical_{0};
};

}  // namespace edl::master
