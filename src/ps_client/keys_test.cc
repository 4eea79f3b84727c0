#include "ps_client/keys.h"

#include <algorithm>
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
        EXPECT_EQ(placement.LaneOf(wire::BucketOf(keys.ids()[i])).value(), lane);
      }
    }
  }
}

TEST(Keys, SpreadRowsAndSumGradientsInTheOrderThatWasGiven) {
  constexpr size_t kDim = 2;
  Keys keys{wire::Placement(3)};
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{7, 8, 9}, std::vector<int64_t>{5, -1, 5, 7, 5, -1}}) {
    keys.Assign(ids);
    const size_t unique = keys.ids().size();
    std::vector<float> rows(unique * kDim);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<float>(keys.ids()[i / kDim]) + 0.5F * static_cast<float>(i % kDim);
    }
    std::vector<float> spread(ids.size() * kDim);
    keys.Spread(rows.data(), kDim, spread.data());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(spread[i * kDim], static_cast<float>(ids[i]));
      EXPECT_EQ(spread[i * kDim + 1], static_cast<float>(ids[i]) + 0.5F);
    }

    const std::vector<float> gradients(ids.size() * kDim, 2);
    std::vector<float> sums(unique * kDim, 99);
    keys.Sum(gradients.data(), kDim, sums.data());

    for (size_t i = 0; i < unique; ++i) {
      const auto times = static_cast<float>(std::ranges::count(ids, keys.ids()[i]));
      EXPECT_EQ(sums[i * kDim], 2 * times);
      EXPECT_EQ(sums[i * kDim + 1], 2 * times);
    }
  }
}

}  // namespace
}  // namespace edl::ps_client
