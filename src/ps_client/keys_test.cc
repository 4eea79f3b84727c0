#include "ps_client/keys.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace edl::ps_client {
namespace {

TEST(Keys, HoldEachIdOnceInTheRangeOfItsLane) {
  const wire::Placement placement(3);
  Keys keys(placement);
  std::mt19937_64 random(1);
  for (const size_t count : {0, 1, 2, 31, 32, 33, 1000, 5000}) {
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % 700) - 350;
    if (count > 2) ids[2] = INT64_MIN;

    keys.Assign(ids);

    ASSERT_EQ(keys.places().size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(keys.ids()[static_cast<size_t>(keys.places()[i])], ids[i]);
    }
    EXPECT_EQ(keys.ids().size(), std::set<int64_t>(ids.begin(), ids.end()).size());
    EXPECT_EQ(keys.BeginOf(3), keys.ids().size());
    for (size_t lane = 0; lane < 3; ++lane) {
      for (size_t i = keys.BeginOf(lane); i < keys.BeginOf(lane + 1); ++i) {
        EXPECT_EQ(placement.LaneOf(wire::BucketOf(keys.ids()[i])), lane);
      }
    }
  }
}

}  // namespace
}  // namespace edl::ps_client
