#include "wire/placement.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace edl::wire {
namespace {

TEST(Placement, GivesEveryBucketToOneLaneInEvenRanges) {
  for (const size_t lanes : {1, 2, 3, 7, 8, 100, 1023, 1024}) {
    const Placement placement(lanes);
    EXPECT_EQ(placement.FirstOf(job::LaneInJob(0)), 0);
    EXPECT_EQ(placement.EndOf(job::LaneInJob(static_cast<uint32_t>(lanes - 1))), kBuckets);
    for (uint32_t index = 0; index < lanes; ++index) {
      const job::LaneInJob lane(index);
      const size_t size = placement.EndOf(lane) - placement.FirstOf(lane);
      EXPECT_GE(size, kBuckets / lanes);
      EXPECT_LE(size, kBuckets / lanes + 1);
      for (size_t bucket = placement.FirstOf(lane); bucket < placement.EndOf(lane); ++bucket) {
        EXPECT_EQ(placement.LaneOf(static_cast<Bucket>(bucket)), lane) << lanes << " lanes";
      }
    }
  }
}

TEST(Placement, SpreadsIdsInARowEvenly) {
  const Placement placement(3);
  std::vector<int> ids(3);
  for (int64_t id = -15000; id < 15000; ++id) ++ids[placement.LaneOf(BucketOf(id)).value()];
  for (const int count : ids) EXPECT_NEAR(count, 10000, 400);
}

TEST(Placement, SpreadsTheBlocksOfATensorEvenly) {
  for (const size_t lanes : {2, 3, 4, 8}) {
    const Placement placement(lanes);
    std::vector<int> blocks(lanes);
    for (size_t block = 0; block < 4 * lanes; ++block) {
      ++blocks[placement.LaneOf(BucketOfBlock("dense/kernel", block)).value()];
    }
    EXPECT_LE(*std::ranges::max_element(blocks) - *std::ranges::min_element(blocks), 2) << lanes;
  }
}

TEST(Placement, CutsATensorIntoBlocksThatMakeItUp) {
  for (const size_t values : {size_t{1}, kBlockValues - 1, kBlockValues, kBlockValues * 3 + 5}) {
    size_t sum = 0;
    for (size_t block = 0; block < BlocksOf(values); ++block) sum += ValuesOfBlock(values, block);
    EXPECT_EQ(sum, values);
  }
  EXPECT_EQ(BlocksOf(0), 0U);
}

}  // namespace
}  // namespace edl::wire
