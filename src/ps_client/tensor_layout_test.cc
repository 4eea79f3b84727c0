#include "ps_client/tensor_layout.h"

#include <gtest/gtest.h>

namespace edl::ps_client {
namespace {

TEST(TensorLayout, GivesEachLaneItsBlocksInTheirOrder) {
  for (const size_t lanes : {1, 2, 7, 64}) {
    const wire::Placement placement(lanes);
    const size_t size = 100 * wire::kBlockValues + 17;
    const TensorLayout layout("dense/kernel", size, placement);
    size_t all = 0;
    for (size_t lane = 0; lane < lanes; ++lane) {
      std::vector<size_t> blocks;
      size_t count = 0;
      for (const TensorLayout::Range& range : layout.RangesOf(lane)) {
        EXPECT_EQ(range.begin % wire::kBlockValues, 0U);
        for (size_t at = range.begin; at < range.begin + range.count; at += wire::kBlockValues) {
          blocks.push_back(at / wire::kBlockValues);
        }
        count += range.count;
      }
      EXPECT_TRUE(std::is_sorted(blocks.begin(), blocks.end()));
      for (const size_t block : blocks) {
        EXPECT_EQ(placement.LaneOf(wire::BucketOfBlock("dense/kernel", block)).value(), lane);
      }
      EXPECT_EQ(layout.CountOf(lane), count);
      all += count;
    }
    EXPECT_EQ(all, size);
  }
}

TEST(TensorLayout, JoinsNeighboursOfALane) {
  const TensorLayout layout("d", 100 * wire::kBlockValues, wire::Placement(1));
  EXPECT_EQ(layout.RangesOf(0).size(), 1U);
}

TEST(TensorLayout, IsEmptyWithoutTensors) {
  const TensorLayout layout("d", 0, wire::Placement(2));
  EXPECT_TRUE(layout.RangesOf(1).empty());
  EXPECT_EQ(layout.CountOf(1), 0U);
}

}  // namespace
}  // namespace edl::ps_client
