#include "master/sync/sync_primitives.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

constexpr Incarnation kOne(1);
constexpr Incarnation kOther(2);

// The answer of a call, which may arrive later.
class Awaited {
 public:
  SyncPrimitives::Reply reply() const {
    return [answer = answer_](bool ready) { answer->emplace(ready); };
  }
  bool waits() const { return !answer_->has_value(); }
  bool IsTrue() const { return answer_->value_or(false); }
  bool IsFalse() const { return !answer_->value_or(true); }

 private:
  std::shared_ptr<std::optional<bool>> answer_ = std::make_shared<std::optional<bool>>();
};

class SyncPrimitivesTest : public ::testing::Test {
 protected:
  // The state as a restarted master loads it.
  SyncPrimitives Reload() {
    sync_.Flush();
    EXPECT_OK(ledger_.Commit());
    SyncPrimitives loaded(ledger_);
    EXPECT_OK(loaded.Load((*ledger_.Meta())["sync"]));
    return loaded;
  }

  const std::vector<ReplicaRef> two_workers_{Worker(0), Worker(1)};
  Ledger ledger_ = *Ledger::Open(":memory:");
  SyncPrimitives sync_{ledger_};
};

TEST_F(SyncPrimitivesTest, HoldsABarrierUntilAllArrived) {
  const Awaited first;
  const Awaited second;

  sync_.Arrive("init", Worker(0), two_workers_, std::nullopt, first.reply());
  EXPECT_TRUE(first.waits());
  sync_.Arrive("init", Worker(1), two_workers_, std::nullopt, second.reply());

  EXPECT_TRUE(first.IsTrue());
  EXPECT_TRUE(second.IsTrue());
}

TEST_F(SyncPrimitivesTest, DoesNotWaitForLaterReplicas) {
  const Awaited first;
  const Awaited second;
  sync_.Arrive("init", Worker(0), two_workers_, std::nullopt, first.reply());

  sync_.Arrive("init", Worker(1), {Worker(0), Worker(1), Worker(2)}, std::nullopt, second.reply());

  EXPECT_TRUE(first.IsTrue());
}

TEST_F(SyncPrimitivesTest, DoesNotWaitForExitedReplicas) {
  const Awaited first;
  sync_.Arrive("init", Worker(0), two_workers_, std::nullopt, first.reply());

  sync_.ReplicaGone(Worker(1));

  EXPECT_TRUE(first.IsTrue());
}

TEST_F(SyncPrimitivesTest, AnswersFalseAtTheDeadline) {
  const Time until(seconds(10));
  const Awaited barrier;
  const Awaited event;
  const Awaited lock;
  sync_.Acquire("save", kOther, until, Awaited().reply());
  sync_.Arrive("init", Worker(0), two_workers_, until, barrier.reply());
  sync_.AwaitEvent("ready", until, event.reply());
  sync_.Acquire("save", kOne, until, lock.reply());

  sync_.Tick(until - milliseconds(1));
  EXPECT_TRUE(barrier.waits() && event.waits() && lock.waits());
  sync_.Tick(until);

  EXPECT_TRUE(barrier.IsFalse());
  EXPECT_TRUE(event.IsFalse());
  EXPECT_TRUE(lock.IsFalse());
}

TEST_F(SyncPrimitivesTest, KeepsArrivalsOverARestart) {
  sync_.Arrive("init", Worker(0), two_workers_, std::nullopt, Awaited().reply());

  SyncPrimitives loaded = Reload();
  const Awaited second;
  loaded.Arrive("init", Worker(1), two_workers_, std::nullopt, second.reply());

  EXPECT_TRUE(second.IsTrue());
}

TEST_F(SyncPrimitivesTest, ReportsAnEventToWaitingAndToLaterCalls) {
  const Awaited before;
  const Awaited after;
  const Awaited after_restart;
  sync_.AwaitEvent("ready", std::nullopt, before.reply());
  EXPECT_TRUE(before.waits());

  sync_.Notify("ready");
  sync_.AwaitEvent("ready", std::nullopt, after.reply());
  SyncPrimitives loaded = Reload();
  loaded.AwaitEvent("ready", std::nullopt, after_restart.reply());

  EXPECT_TRUE(before.IsTrue());
  EXPECT_TRUE(after.IsTrue());
  EXPECT_TRUE(after_restart.IsTrue());
}

TEST_F(SyncPrimitivesTest, AnswersWaitingCallsWhenABarrierIsDeleted) {
  const Awaited waiting;
  const Awaited next;
  sync_.Arrive("init", Worker(0), two_workers_, std::nullopt, waiting.reply());
  sync_.Notify("ready");

  sync_.Delete("init");
  sync_.DeleteAll();
  sync_.AwaitEvent("ready", std::nullopt, next.reply());

  EXPECT_TRUE(waiting.IsTrue());
  EXPECT_TRUE(next.waits());
}

TEST_F(SyncPrimitivesTest, GivesALockToOneAtATimeInOrder) {
  const Awaited one;
  const Awaited again;
  const Awaited other;
  sync_.Acquire("save", kOne, std::nullopt, one.reply());
  sync_.Acquire("save", kOne, std::nullopt, again.reply());
  sync_.Acquire("save", kOther, std::nullopt, other.reply());
  EXPECT_TRUE(one.IsTrue());
  EXPECT_TRUE(again.IsTrue());
  EXPECT_TRUE(other.waits());

  EXPECT_FALSE(sync_.Release("save", kOther));
  EXPECT_TRUE(sync_.Release("save", kOne));

  EXPECT_TRUE(other.IsTrue());
  EXPECT_TRUE(sync_.Release("save", std::nullopt));
  EXPECT_FALSE(sync_.Release("save", std::nullopt));
}

TEST_F(SyncPrimitivesTest, FreesLocksAndCallsOfClosedSessions) {
  const Awaited waits_and_goes;
  const Awaited next;
  sync_.Acquire("save", kOne, std::nullopt, Awaited().reply());
  sync_.Acquire("load", kOther, std::nullopt, Awaited().reply());
  sync_.Acquire("load", kOne, std::nullopt, waits_and_goes.reply());
  sync_.Acquire("save", kOther, std::nullopt, next.reply());

  sync_.SessionGone(kOne);

  EXPECT_TRUE(waits_and_goes.IsFalse());
  EXPECT_TRUE(next.IsTrue());
}

TEST_F(SyncPrimitivesTest, KeepsALockOverARestart) {
  sync_.Acquire("save", kOne, std::nullopt, Awaited().reply());

  SyncPrimitives loaded = Reload();
  const Awaited other;
  const Awaited holder;
  loaded.Acquire("save", kOther, std::nullopt, other.reply());
  loaded.Acquire("save", kOne, std::nullopt, holder.reply());

  EXPECT_TRUE(other.waits());
  EXPECT_TRUE(holder.IsTrue());
}

TEST_F(SyncPrimitivesTest, WritesNothingForAReplicaThatTookNoPart) {
  sync_.Arrive("init", Worker(0), two_workers_, std::nullopt, Awaited().reply());
  sync_.Flush();
  ledger_.PutMeta("sync", "as it was");

  sync_.ReplicaGone(Worker(7));
  sync_.Flush();
  EXPECT_EQ((*ledger_.Meta())["sync"], "as it was");

  sync_.ReplicaGone(Worker(1));
  sync_.Flush();
  EXPECT_NE((*ledger_.Meta())["sync"], "as it was");
}

TEST_F(SyncPrimitivesTest, ForgetsTheOldestBarriersAndEvents) {
  for (size_t step = 0; step < 2 * SyncPrimitives::kMostKept; ++step) {
    const std::string name = "step-" + std::to_string(step);
    for (const ReplicaRef& worker : two_workers_) {
      sync_.Arrive(name, worker, two_workers_, std::nullopt, Awaited().reply());
    }
    sync_.Notify(name);
  }

  SyncPrimitives loaded = Reload();

  EXPECT_LT((*ledger_.Meta())["sync"].size(), 100 * SyncPrimitives::kMostKept);
  const std::string last = "step-" + std::to_string(2 * SyncPrimitives::kMostKept - 1);
  const Awaited late;
  const Awaited event;
  loaded.Arrive(last, Worker(7), two_workers_, std::nullopt, late.reply());
  loaded.AwaitEvent(last, std::nullopt, event.reply());
  EXPECT_TRUE(late.IsTrue()) << "it was passed";
  EXPECT_TRUE(event.IsTrue());
}

TEST_F(SyncPrimitivesTest, WritesNothingForSomebodyWhoTookNoPart) {
  sync_.Notify("event");
  sync_.Flush();
  ledger_.PutMeta("sync", "untouched");

  sync_.ReplicaGone(Worker(0));
  sync_.SessionGone(kOne);
  sync_.Flush();

  ASSERT_EQ(ledger_.Commit(), Ok());
  EXPECT_EQ((*ledger_.Meta())["sync"], "untouched");
}

TEST_F(SyncPrimitivesTest, RefusesADamagedRecord) {
  for (const char* damaged :
       {"{", "[]", R"({"barriers": 1})", R"({"barriers": {}, "events": []})"}) {
    SyncPrimitives loaded(ledger_);
    EXPECT_THAT(loaded.Load(damaged), StatusIs(Code::kDataLoss)) << damaged;
  }
}

}  // namespace
}  // namespace edl::master
