#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/clock.h"

namespace edl::master {

// How long the last shards took: the 95th percentile of the last 256. One shard that took an hour
// does not count, and a job that gets slower is followed.
//
// Confined: call it on the master's loop.
class ShardTimes {
 public:
  void Add(Duration time) {
    times_.at(added_++ % times_.size()) = time;
    if (added_ <= kEvery || added_ % kEvery == 0) Refresh();
  }
  bool empty() const { return added_ == 0; }
  // As of a few shards ago. Zero while there is none.
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
