#include "master/shards/waiter_queue.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Incarnation kSession(7);
constexpr Time kStart(std::chrono::hours(1));

Waiter Call(uint64_t call, const std::string& dataset, uint64_t number = 1) {
  return {.call = call, .session = kSession, .number = number, .dataset = dataset};
}

std::vector<uint64_t> CallsFor(const WaiterQueue& queue, const std::string& dataset) {
  std::vector<uint64_t> calls;
  for (const Waiter& waiter : queue.Of(dataset)) calls.push_back(waiter.call);
  return calls;
}

TEST(WaiterQueue, KeepsTheCallsOfADatasetInTheirOrder) {
  WaiterQueue queue;
  queue.Add(Call(5, "a"));
  queue.Add(Call(3, "a"));
  queue.Add(Call(4, "b"));

  EXPECT_THAT(CallsFor(queue, "a"), ElementsAre(5, 3));
  EXPECT_THAT(CallsFor(queue, "b"), ElementsAre(4));
  EXPECT_THAT(CallsFor(queue, "c"), IsEmpty());
  EXPECT_THAT(queue.CallsOf(kSession), ElementsAre(3, 4, 5));
  EXPECT_EQ(queue.size(), 3u);
}

TEST(WaiterQueue, RemovesACallFromAllIndexes) {
  WaiterQueue queue;
  Waiter call = Call(5, "a");
  call.deadline = kStart;
  queue.Add(std::move(call));

  EXPECT_EQ(queue.Remove(5).dataset, "a");

  EXPECT_EQ(queue.Find(5), nullptr);
  EXPECT_FALSE(queue.Waits(kSession));
  EXPECT_THAT(CallsFor(queue, "a"), IsEmpty());
  EXPECT_EQ(queue.TakeDue(kStart), std::nullopt);
}

TEST(WaiterQueue, TakesEachCallOnceWhenItsDeadlineHasPassed) {
  WaiterQueue queue;
  Waiter late = Call(1, "a");
  late.deadline = kStart + seconds(2);
  Waiter early = Call(2, "a");
  early.deadline = kStart + seconds(1);
  queue.Add(std::move(late));
  queue.Add(std::move(early));
  queue.Add(Call(3, "a"));

  EXPECT_EQ(queue.TakeDue(kStart), std::nullopt);
  EXPECT_EQ(queue.TakeDue(kStart + seconds(5)), 2u);
  EXPECT_EQ(queue.TakeDue(kStart + seconds(5)), 1u);
  EXPECT_EQ(queue.TakeDue(kStart + seconds(5)), std::nullopt);
  EXPECT_NE(queue.Find(1), nullptr) << "the caller removes it";
}

TEST(WaiterQueue, ReplacesACallInItsPlace) {
  WaiterQueue queue;
  int first = 0;
  int second = 0;
  Waiter call = Call(1, "a", /*number=*/4);
  call.deadline = kStart;
  call.reply = [&](LeaseAnswer, const std::vector<LeasedShard>&) { ++first; };
  queue.Add(std::move(call));
  queue.Add(Call(2, "a", /*number=*/5));

  const auto replaced = queue.Replace(kSession, 4, 9, [&](LeaseAnswer, const auto&) { ++second; });

  ASSERT_NE(replaced, nullptr);
  replaced(LeaseAnswer::kRetry, {});
  EXPECT_EQ(first, 1);
  EXPECT_THAT(CallsFor(queue, "a"), ElementsAre(9, 2));
  EXPECT_EQ(queue.Find(1), nullptr);
  EXPECT_EQ(queue.TakeDue(kStart), 9u);
  queue.Remove(9).reply(LeaseAnswer::kWait, {});
  EXPECT_EQ(second, 1);
}

TEST(WaiterQueue, ReplacesNothingForAnotherNumberOrSession) {
  WaiterQueue queue;
  queue.Add(Call(1, "a", /*number=*/4));

  EXPECT_EQ(queue.Replace(kSession, 5, 9, [](LeaseAnswer, const auto&) {}), nullptr);
  EXPECT_EQ(queue.Replace(Incarnation(8), 4, 9, [](LeaseAnswer, const auto&) {}), nullptr);
  EXPECT_NE(queue.Find(1), nullptr);
}

TEST(WaiterQueue, ForgetsOnlyADatasetForWhichNoCallWaits) {
  WaiterQueue queue;
  queue.Add(Call(1, "a"));

  queue.ForgetDataset("a");
  EXPECT_THAT(CallsFor(queue, "a"), ElementsAre(1));

  queue.Remove(1);
  queue.ForgetDataset("a");
  EXPECT_THAT(CallsFor(queue, "a"), IsEmpty());
}

}  // namespace
}  // namespace edl::master
