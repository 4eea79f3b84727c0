#include "base/range_set.h"

#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Range = RangeSet::Range;

TEST(RangeSet, MergesNeighboursIntoOneRange) {
  RangeSet set;
  set.Add(4);
  set.Add(6);

  std::vector<uint64_t> touched;
  set.Add(5, &touched);

  EXPECT_THAT(set.ranges(), ElementsAre(Range{4, 6}));
  EXPECT_THAT(touched, UnorderedElementsAre(4, 6));
}

TEST(RangeSet, FindsTheFirstMissingNumber) {
  RangeSet set;
  set.AddRange({2, 4});

  EXPECT_EQ(set.NextMissing(0), 0);
  EXPECT_EQ(set.NextMissing(2), 5);
  EXPECT_EQ(set.NextMissing(7), 7);
}

TEST(RangeSet, SubtractsAsAPlainSetDoes) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    RangeSet a;
    RangeSet b;
    for (int i = 0; i < 12; ++i) {
      const uint64_t first = random() % 60;
      a.AddRange({first, first + random() % 5});
      const uint64_t other = random() % 60;
      b.AddRange({other, other + random() % 4});
    }
    const RangeSet left = a.Minus(b);
    for (uint64_t number = 0; number < 70; ++number) {
      ASSERT_EQ(left.Contains(number), a.Contains(number) && !b.Contains(number)) << number;
    }
  }
}

TEST(RangeSet, AgreesWithAPlainSetOnRandomNumbers) {
  std::mt19937 random(7);
  RangeSet ranges;
  std::set<uint64_t> plain;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t number = random() % 700;
    if (i % 10 == 0) {
      ranges.AddRange({number, number + 3});
      for (uint64_t n = number; n <= number + 3; ++n) plain.insert(n);
    } else {
      EXPECT_EQ(ranges.Add(number), plain.insert(number).second);
    }
    ASSERT_EQ(ranges.count(), plain.size());
  }
  for (uint64_t number = 0; number < 710; ++number) {
    EXPECT_EQ(ranges.Contains(number), plain.contains(number)) << number;
  }
}

}  // namespace
}  // namespace edl
