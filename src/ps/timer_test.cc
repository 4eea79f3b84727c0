#include "ps/timer.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using std::chrono::milliseconds;

// Runs the loop on the thread of the test. CallAfter ends a wait that nothing else ends.
class TimerTest : public testing::Test {
 protected:
  // Runs the loop until `calls_` has that value, for at most a minute.
  void RunUntil(int calls) {
    bool timed_out = false;
    loop_->CallAfter(std::chrono::minutes(1), [&] { timed_out = true; });
    while (calls_ < calls && !timed_out) loop_->RunOnce();
    ASSERT_FALSE(timed_out) << "waited for call " << calls << " of the timer";
  }
  // Runs the loop for a while.
  void RunFor(Duration time) {
    bool over = false;
    loop_->CallAfter(time, [&] { over = true; });
    while (!over) loop_->RunOnce();
  }

  SystemClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::Make(clock_));
  int calls_ = 0;
};

TEST_F(TimerTest, CallsNothingBeforeItIsSet) {
  ASSERT_OK_AND_ASSIGN(const auto timer, Timer::Make(*loop_, [&] { ++calls_; }));
  RunFor(milliseconds(20));
  EXPECT_EQ(calls_, 0);
}

TEST_F(TimerTest, CallsOnceAndCanBeSetAgain) {
  ASSERT_OK_AND_ASSIGN(const auto timer, Timer::Make(*loop_, [&] { ++calls_; }));
  timer->SetOnce(milliseconds(1));
  RunUntil(1);
  RunFor(milliseconds(20));
  EXPECT_EQ(calls_, 1);
  timer->SetOnce(milliseconds(1));
  RunUntil(2);
}

TEST_F(TimerTest, CallsPeriodically) {
  ASSERT_OK_AND_ASSIGN(const auto timer, Timer::Make(*loop_, [&] { ++calls_; }));
  const Time begin = clock_.Now();
  timer->SetEvery(milliseconds(3));
  RunUntil(3);
  EXPECT_GE(clock_.Now() - begin, milliseconds(3));
}

TEST_F(TimerTest, CallsNothingAfterItIsDestroyed) {
  {
    ASSERT_OK_AND_ASSIGN(const auto timer, Timer::Make(*loop_, [&] { ++calls_; }));
    timer->SetEvery(milliseconds(1));
  }
  RunFor(milliseconds(20));
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace edl::ps
