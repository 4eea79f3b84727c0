#include "kube/backoff.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_timing.h"

namespace edl::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Backoff, DoublesUpToItsLongest) {
  FakeTiming fake;
  fake.set_chance(1);
  Backoff backoff({.first = milliseconds(800), .longest = seconds(3)}, fake.timing());
  EXPECT_EQ(backoff.Next(), milliseconds(800));
  EXPECT_EQ(backoff.Next(), milliseconds(1600));
  EXPECT_EQ(backoff.Next(), seconds(3));
  EXPECT_EQ(backoff.Next(), seconds(3));
}

TEST(Backoff, IsByChanceUpToHalfAsLong) {
  FakeTiming fake;
  Backoff backoff({.first = milliseconds(800), .longest = seconds(3)}, fake.timing());
  EXPECT_EQ(backoff.Next(), milliseconds(400));
}

TEST(Backoff, ForgetsWhatIsLongPast) {
  FakeTiming fake;
  fake.set_chance(1);
  Backoff backoff({.first = seconds(1), .longest = seconds(30)}, fake.timing());
  EXPECT_EQ(backoff.Next(), seconds(1));
  fake.clock().Advance(minutes(2));
  EXPECT_EQ(backoff.Next(), seconds(2));
  fake.clock().Advance(minutes(2) + seconds(1));
  EXPECT_EQ(backoff.Next(), seconds(1));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), seconds(1));
}

}  // namespace
}  // namespace edl::kube
