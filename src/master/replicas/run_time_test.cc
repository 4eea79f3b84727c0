#include "master/replicas/run_time.h"

#include <gtest/gtest.h>

namespace edl::master {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const Time kStart{seconds(1000)};
const WallTime kWallStart{seconds(1'700'000'000)};

TEST(RunTime, FollowsTheMonotonicClockOverRestartsWhateverTheWallClockDoes) {
  RunTime first;
  first.Start("boot", kStart);
  const std::string saved = first.Save(kStart + seconds(10), kWallStart);

  RunTime second;
  second.Load(saved, "boot", kStart + seconds(30), kWallStart - hours(5));

  EXPECT_EQ(second.Seconds(kStart + seconds(40)), 40);
}

TEST(RunTime, BridgesARebootByTheWallClock) {
  RunTime first;
  first.Start("boot", kStart);
  const std::string saved = first.Save(kStart + seconds(10), kWallStart);

  RunTime second;
  second.Load(saved, "another boot", Time(seconds(5)), kWallStart + seconds(60));

  EXPECT_EQ(second.Seconds(Time(seconds(6))), 71);
}

TEST(RunTime, DoesNotCountTheTimeBetweenAnEndAndAResume) {
  RunTime first;
  first.Start("boot", kStart);
  first.End(kStart + seconds(10));
  EXPECT_EQ(first.Seconds(kStart + seconds(20)), 10);

  RunTime second;
  second.Load(first.Save(kStart + seconds(20), kWallStart), "boot", kStart + hours(1), kWallStart);

  EXPECT_EQ(second.Seconds(kStart + hours(1) + seconds(1)), 11);
}

TEST(RunTime, StartsAtZeroIfTheRecordCannotBeParsed) {
  for (const char* saved : {"", "{", "[]", "{}", R"({"ran": "long", "ended": true})"}) {
    RunTime time;
    time.Load(saved, "boot", kStart, kWallStart);
    EXPECT_LE(time.Seconds(kStart + seconds(1)), 1) << saved;
  }
}

}  // namespace
}  // namespace edl::master
