#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "wire/placement.h"

namespace edl::ps_client {

// Maps the values of a dense tensor to lanes: the ranges of values that each lane stores, in the
// order of its blocks. Adjacent blocks of a lane form one range. Immutable.
class TensorLayout {
 public:
  TensorLayout(std::string_view name, size_t size, const wire::Placement& placement);

  struct Range {
    size_t begin = 0;
    size_t count = 0;
  };
  std::span<const Range> RangesOf(size_t lane) const {
    return std::span(ranges_).subspan(begins_[lane], begins_[lane + 1] - begins_[lane]);
  }
  // How many values a lane stores.
  size_t CountOf(size_t lane) const { return counts_[lane]; }

 private:
  std::vector<Range> ranges_;   // of lane 0, then of lane 1, and so on
  std::vector<size_t> begins_;  // index in ranges_ of each lane's first range, and their number
  std::vector<size_t> counts_;
};

}  // namespace edl::ps_client
