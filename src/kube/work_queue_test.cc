#include "kube/work_queue.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/testing/await.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ObjectKey kOne{"ns", "one"};
const ObjectKey kTwo{"ns", "two"};

class WorkQueueTest : public testing::Test {
 protected:
  FakeClock clock_;
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, HandsOutAKeyOnceHoweverOftenItWasAdded) {
  queue_.Add(kOne);
  queue_.Add(kTwo);
  queue_.Add(kOne);

  EXPECT_EQ(queue_.TryTake(), kOne);
  EXPECT_EQ(queue_.TryTake(), kTwo);
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, NeverHandsOutAKeyThatAThreadWorksOn) {
  queue_.Add(kOne);
  ASSERT_EQ(queue_.TryTake(), kOne);

  queue_.Add(kOne);
  EXPECT_EQ(queue_.TryTake(), std::nullopt);

  queue_.Succeeded(kOne);
  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, DelaysAKeyLongerAfterEachFailureInARow) {
  queue_.Add(kOne);
  for (const Duration wait : {milliseconds(5), milliseconds(10), milliseconds(20)}) {
    ASSERT_EQ(queue_.TryTake(), kOne);
    queue_.Failed(kOne);
    clock_.Advance(wait - milliseconds(1));
    EXPECT_EQ(queue_.TryTake(), std::nullopt);
    clock_.Advance(milliseconds(1));
  }
  ASSERT_EQ(queue_.TryTake(), kOne);
  queue_.Succeeded(kOne);
  queue_.Add(kOne);
  ASSERT_EQ(queue_.TryTake(), kOne);
  queue_.Failed(kOne);
  clock_.Advance(milliseconds(5));
  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, LimitsTheDelayAfterManyFailures) {
  queue_.Add(kOne);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(queue_.TryTake(), kOne);
    queue_.Failed(kOne);
    clock_.Advance(seconds(1000));
  }
  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, LimitsTheDelayAsTheCallerSays) {
  queue_.Add(kOne);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(queue_.TryTake(), kOne);
    queue_.Failed(kOne, seconds(5));
    clock_.Advance(seconds(5));
  }
  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, ForgetsTheTimesOfAKey) {
  queue_.AddAt(kOne, clock_.Now() + seconds(10));
  queue_.Add(kOne);
  ASSERT_EQ(queue_.TryTake(), kOne);

  queue_.Forget(kOne);

  clock_.Advance(seconds(10));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  queue_.AddAt(kOne, clock_.Now() + seconds(10));
  clock_.Advance(seconds(10));
  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, TakesAForgottenKeyThatWasAddedMeanwhile) {
  queue_.Add(kOne);
  ASSERT_EQ(queue_.TryTake(), kOne);
  queue_.Add(kOne);

  queue_.Forget(kOne);

  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, KeepsTheEarliestOfSeveralTimes) {
  queue_.AddAt(kOne, clock_.Now() + seconds(10));
  queue_.AddAt(kOne, clock_.Now() + seconds(5));
  queue_.AddAt(kOne, clock_.Now() + seconds(20));

  clock_.Advance(seconds(4));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  clock_.Advance(seconds(1));
  ASSERT_EQ(queue_.TryTake(), kOne);
  queue_.Succeeded(kOne);
  clock_.Advance(seconds(60));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, AChangeIsNotDelayedByAnEarlierFailure) {
  queue_.Add(kOne);
  ASSERT_EQ(queue_.TryTake(), kOne);
  queue_.Failed(kOne);

  queue_.Add(kOne);

  EXPECT_EQ(queue_.TryTake(), kOne);
}

TEST_F(WorkQueueTest, MeasuresHowLongKeysWaitAndRun) {
  queue_.Add(kOne);
  queue_.Add(kTwo);
  clock_.Advance(seconds(1));
  ASSERT_EQ(queue_.TryTake(), kOne);
  ASSERT_EQ(queue_.TryTake(), kTwo);
  clock_.Advance(seconds(2));
  EXPECT_EQ(queue_.counters().unfinished_runs, seconds(4));
  queue_.Succeeded(kOne);
  clock_.Advance(seconds(3));

  WorkQueue::Counters counters = queue_.counters();
  EXPECT_EQ(counters.waits.count, 2U);
  EXPECT_EQ(counters.waits.micros, 2'000'000U);
  EXPECT_EQ(counters.runs.count, 1U);
  EXPECT_EQ(counters.runs.micros, 2'000'000U);
  EXPECT_EQ(counters.unfinished_runs, seconds(5));
  EXPECT_EQ(counters.longest_run, seconds(5));

  queue_.Failed(kTwo);
  counters = queue_.counters();
  EXPECT_EQ(counters.runs.micros, 7'000'000U);
  EXPECT_EQ(counters.longest_run, seconds(0));
}

TEST_F(WorkQueueTest, TakeReturnsAKeyOfAnotherThreadAndEndsOnStop) {
  const SystemClock clock;
  WorkQueue queue(clock);
  std::optional<ObjectKey> first;
  std::optional<ObjectKey> second;
  std::jthread taker([&](const std::stop_token& stop) {
    first = queue.Take(stop);
    second = queue.Take(stop);
  });
  queue.AddAt(kOne, clock.Now() + milliseconds(1));
  ASSERT_OK(AwaitPolling("the key to be taken", [&] { return queue.counters().running == 1; }));
  taker.request_stop();
  taker.join();

  EXPECT_EQ(first, kOne);
  EXPECT_EQ(second, std::nullopt);
}

}  // namespace
}  // namespace edl::kube
