#include "kube/rate_limit.h"

#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"

namespace edl::kube {
namespace {

using std::chrono::milliseconds;

TEST(RateLimit, LetsABurstThroughAndSpacesTheRest) {
  FakeClock clock;
  RateLimit limit(/*per_second=*/10, /*burst=*/2, clock);

  EXPECT_EQ(limit.Take(), Duration(0));
  EXPECT_EQ(limit.Take(), Duration(0));
  EXPECT_EQ(limit.Take(), milliseconds(100));
  EXPECT_EQ(limit.Take(), milliseconds(200));

  clock.Advance(milliseconds(250));
  EXPECT_EQ(limit.Take(), milliseconds(50));
}

TEST(RateLimit, SavesNoMoreThanABurst) {
  FakeClock clock;
  RateLimit limit(/*per_second=*/10, /*burst=*/2, clock);
  clock.Advance(std::chrono::hours(1));

  EXPECT_TRUE(limit.TryTake());
  EXPECT_TRUE(limit.TryTake());
  EXPECT_FALSE(limit.TryTake());
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(limit.TryTake());
}

}  // namespace
}  // namespace edl::kube
