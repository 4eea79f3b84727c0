#include "base/backoff.h"

#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"

namespace edl {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr BackoffLimits kLimits{.first = milliseconds(800), .longest = seconds(3)};

double Most() { return 1; }
double Least() { return 0; }

TEST(Backoff, DoublesUpToTheLongestWait) {
  const FakeClock clock;
  Backoff backoff(kLimits, clock, Most);
  EXPECT_EQ(backoff.Next(), milliseconds(800));
  EXPECT_EQ(backoff.Next(), milliseconds(1600));
  EXPECT_EQ(backoff.Next(), seconds(3));
  EXPECT_EQ(backoff.Next(), seconds(3));
}

TEST(Backoff, JitterShortensTheWaitByUpToHalf) {
  const FakeClock clock;
  Backoff backoff(kLimits, clock, Least);
  EXPECT_EQ(backoff.Next(), milliseconds(400));
}

TEST(Backoff, StartsAgainLongAfterTheLastFailure) {
  FakeClock clock;
  Backoff backoff({.first = seconds(1), .longest = seconds(30)}, clock, Most);
  EXPECT_EQ(backoff.Next(), seconds(1));
  clock.Advance(minutes(2));
  EXPECT_EQ(backoff.Next(), seconds(2));
  clock.Advance(minutes(2) + seconds(1));
  EXPECT_EQ(backoff.Next(), seconds(1));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), seconds(1));
}

TEST(BackoffLimits, CountsFromTheFirstFailure) {
  EXPECT_EQ(kLimits.After(-1), seconds(0));
  EXPECT_EQ(kLimits.After(0), seconds(0));
  EXPECT_EQ(kLimits.After(1), milliseconds(800));
  EXPECT_EQ(kLimits.After(2), milliseconds(1600));
  EXPECT_EQ(kLimits.After(3), seconds(3));
  EXPECT_EQ(kLimits.After(2'000'000'000), seconds(3));
}

TEST(BackoffLimits, NeverExceedsItsLongest) {
  constexpr BackoffLimits kOdd{.first = seconds(5), .longest = seconds(1)};
  EXPECT_EQ(kOdd.After(1), seconds(1));
  constexpr BackoffLimits kHuge{.first = seconds(1), .longest = Duration::max()};
  EXPECT_EQ(kHuge.After(1000), Duration::max());
}

}  // namespace
}  // namespace edl
