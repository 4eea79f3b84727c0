#include "master/shards/permutation.h"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

namespace edl::master {
namespace {

TEST(Permutation, HitsEveryNumberOnceForSmallAndOddSizes) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 150, 1023, 1025, 20000}) {
    const Permutation order(n, 42);
    std::vector<bool> seen(n);
    for (uint64_t place = 0; place < n; ++place) {
      const uint64_t number = order.At(place);
      ASSERT_LT(number, n);
      ASSERT_FALSE(seen[number]) << number << " twice in " << n;
      seen[number] = true;
    }
  }
}

TEST(Permutation, StaysInsideForTheLargestDatasets) {
  const uint64_t n = 100'000'000'000;
  const Permutation order(n, 1);
  for (uint64_t place = n - 1000; place < n; ++place) EXPECT_LT(order.At(place), n);
}

TEST(Permutation, DependsOnItsKeyAlone) {
  const Permutation one(1000, 1);
  const Permutation same(1000, 1);
  const Permutation other(1000, 2);
  int differ = 0;
  for (uint64_t place = 0; place < 1000; ++place) {
    EXPECT_EQ(one.At(place), same.At(place));
    differ += one.At(place) != other.At(place) ? 1 : 0;
  }
  EXPECT_GT(differ, 950);
}

TEST(Permutation, SeparatesNeighbours) {
  const uint64_t n = 10000;
  const Permutation order(n, 3);
  int64_t distance = 0;
  for (uint64_t place = 1; place < n; ++place) {
    distance +=
        std::abs(static_cast<int64_t>(order.At(place)) - static_cast<int64_t>(order.At(place - 1)));
  }
  EXPECT_NEAR(static_cast<double>(distance) / static_cast<double>(n), n / 3.0, n / 30.0);
}

}  // namespace
}  // namespace edl::master
