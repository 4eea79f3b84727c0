#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "wire/placement.h"

namespace edl::ps_client {

// Where the values of a dense tensor belong: for each lane the ranges of values that it has, in
// the order of its blocks. Neighbouring blocks of a lane are one range. Immutable.
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
  // The values of a lane.
  size_t CountOf(size_t lane) const { return counts_[lane]; }

 private:
  std::vector<Range> ranges_;   // those of lane 0, then those of lane 1
  std::vector<size_t> begins_;  // of each lane's ranges, and their end
  std::vector<size_t> counts_;
};

}  // namespace edl::ps_client
