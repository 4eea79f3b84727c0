#include "ps_client/tensor_layout.h"

namespace edl::ps_client {

TensorLayout::TensorLayout(std::string_view name, size_t size, const wire::Placement& placement)
    : counts_(placement.lanes()) {
  std::vector<std::vector<Range>> by_lane(placement.lanes());
  for (size_t block = 0; block < wire::BlocksOf(size); ++block) {
    const size_t lane = placement.LaneOf(wire::BucketOfBlock(name, block)).value();
    const size_t begin = block * wire::kBlockValues;
    const size_t count = wire::ValuesOfBlock(size, block);
    std::vector<Range>& ranges = by_lane[lane];
    if (!ranges.empty() && ranges.back().begin + ranges.back().count == begin) {
      ranges.back().count += count;
    } else {
      ranges.push_back({.begin = begin, .count = count});
    }
    counts_[lane] += count;
  }
  begins_.push_back(0);
  for (const std::vector<Range>& ranges : by_lane) {
    ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
    begins_.push_back(ranges_.size());
  }
}

}  // namespace edl::ps_client
