#include "master/sync_board.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

constexpr Incarnation kOne(1);
constexpr Incarnation kOther(2);

// An answer of the board, which may come later.
class Awaited {
 public:
  SyncBoard::Reply reply() const {
    return [answer = answer_](bool ready) { answer->emplace(ready); };
  }
  bool waits() const { return !answer_->has_value(); }
  bool IsTrue() const { return answer_->value_or(false); }
  bool IsFalse() const { return !answer_->value_or(true); }

 private:
  std::shared_ptr<std::optional<bool>> answer_ = std::make_shared<std::optional<bool>>();
};

class SyncBoardTest : public ::testing::Test {
 protected:
  // What a restarted master has of it.
  SyncBoard Reload() {
    board_.Flush();
    EXPECT_EQ(ledger_.Commit(), Ok());
    SyncBoard loaded(ledger_);
    EXPECT_EQ(loaded.Load((*ledger_.Meta())["sync"]), Ok());
    return loaded;
  }

  const std::vector<ReplicaRef> two_workers_{Worker(0), Worker(1)};
  Ledger ledger_ = *Ledger::Open(":memory:");
  SyncBoard board_{ledger_};
};

TEST_F(SyncBoardTest, HoldsABarrierUntilAllArrived) {
  const Awaited first;
  const Awaited second;

  board_.Arrive("init", Worker(0), two_workers_, std::nullopt, first.reply());
  EXPECT_TRUE(first.waits());
  board_.Arrive("init", Worker(1), two_workers_, std::nullopt, second.reply());

  EXPECT_TRUE(first.IsTrue());
  EXPECT_TRUE(second.IsTrue());
}

TEST_F(SyncBoardTest, DoesNotWaitForThoseWhoCameLater) {
  const Awaited first;
  const Awaited second;
  board_.Arrive("init", Worker(0), two_workers_, std::nullopt, first.reply());

  board_.Arrive("init", Worker(1), {Worker(0), Worker(1), Worker(2)}, std::nullopt, second.reply());

  EXPECT_TRUE(first.IsTrue());
}

TEST_F(SyncBoardTest, DoesNotWaitForTheGone) {
  const Awaited first;
  board_.Arrive("init", Worker(0), two_workers_, std::nullopt, first.reply());

  board_.ReplicaGone(Worker(1));

  EXPECT_TRUE(first.IsTrue());
}

TEST_F(SyncBoardTest, AnswersFalseAtTheDeadline) {
  const Time until(seconds(10));
  const Awaited barrier;
  const Awaited event;
  const Awaited lock;
  board_.Acquire("save", kOther, until, Awaited().reply());
  board_.Arrive("init", Worker(0), two_workers_, until, barrier.reply());
  board_.AwaitEvent("ready", until, event.reply());
  board_.Acquire("save", kOne, until, lock.reply());

  board_.Tick(until - milliseconds(1));
  EXPECT_TRUE(barrier.waits() && event.waits() && lock.waits());
  board_.Tick(until);

  EXPECT_TRUE(barrier.IsFalse());
  EXPECT_TRUE(event.IsFalse());
  EXPECT_TRUE(lock.IsFalse());
}

TEST_F(SyncBoardTest, RemembersWhoArrivedOverARestart) {
  board_.Arrive("init", Worker(0), two_workers_, std::nullopt, Awaited().reply());

  SyncBoard loaded = Reload();
  const Awaited second;
  loaded.Arrive("init", Worker(1), two_workers_, std::nullopt, second.reply());

  EXPECT_TRUE(second.IsTrue());
}

TEST_F(SyncBoardTest, TellsAnEventToThoseWhoWaitAndThoseWhoComeLater) {
  const Awaited before;
  const Awaited after;
  const Awaited after_restart;
  board_.AwaitEvent("ready", std::nullopt, before.reply());
  EXPECT_TRUE(before.waits());

  board_.Notify("ready");
  board_.AwaitEvent("ready", std::nullopt, after.reply());
  SyncBoard loaded = Reload();
  loaded.AwaitEvent("ready", std::nullopt, after_restart.reply());

  EXPECT_TRUE(before.IsTrue());
  EXPECT_TRUE(after.IsTrue());
  EXPECT_TRUE(after_restart.IsTrue());
}

TEST_F(SyncBoardTest, LetsTheWaitingGoWhenABarrierIsDeleted) {
  const Awaited waiting;
  const Awaited next;
  board_.Arrive("init", Worker(0), two_workers_, std::nullopt, waiting.reply());
  board_.Notify("ready");

  board_.Delete("init");
  board_.DeleteAll();
  board_.AwaitEvent("ready", std::nullopt, next.reply());

  EXPECT_TRUE(waiting.IsTrue());
  EXPECT_TRUE(next.waits());
}

TEST_F(SyncBoardTest, GivesALockToOneAtATimeInOrder) {
  const Awaited one;
  const Awaited again;
  const Awaited other;
  board_.Acquire("save", kOne, std::nullopt, one.reply());
  board_.Acquire("save", kOne, std::nullopt, again.reply());
  board_.Acquire("save", kOther, std::nullopt, other.reply());
  EXPECT_TRUE(one.IsTrue());
  EXPECT_TRUE(again.IsTrue());
  EXPECT_TRUE(other.waits());

  EXPECT_FALSE(board_.Release("save", kOther));
  EXPECT_TRUE(board_.Release("save", kOne));

  EXPECT_TRUE(other.IsTrue());
  EXPECT_TRUE(board_.Release("save", std::nullopt));
  EXPECT_FALSE(board_.Release("save", std::nullopt));
}

TEST_F(SyncBoardTest, FreesTheLocksOfTheGoneAndForgetsTheirCalls) {
  const Awaited waits_and_goes;
  const Awaited next;
  board_.Acquire("save", kOne, std::nullopt, Awaited().reply());
  board_.Acquire("load", kOther, std::nullopt, Awaited().reply());
  board_.Acquire("load", kOne, std::nullopt, waits_and_goes.reply());
  board_.Acquire("save", kOther, std::nullopt, next.reply());

  board_.SessionGone(kOne);

  EXPECT_TRUE(waits_and_goes.IsFalse());
  EXPECT_TRUE(next.IsTrue());
}

TEST_F(SyncBoardTest, KeepsALockOverARestart) {
  board_.Acquire("save", kOne, std::nullopt, Awaited().reply());

  SyncBoard loaded = Reload();
  const Awaited other;
  const Awaited holder;
  loaded.Acquire("save", kOther, std::nullopt, other.reply());
  loaded.Acquire("save", kOne, std::nullopt, holder.reply());

  EXPECT_TRUE(other.waits());
  EXPECT_TRUE(holder.IsTrue());
}

TEST_F(SyncBoardTest, WritesNothingForAReplicaThatTookNoPart) {
  board_.Arrive("init", Worker(0), two_workers_, std::nullopt, Awaited().reply());
  board_.Flush();
  ledger_.PutMeta("sync", "as it was");

  board_.ReplicaGone(Worker(7));
  board_.Flush();
  EXPECT_EQ((*ledger_.Meta())["sync"], "as it was");

  board_.ReplicaGone(Worker(1));
  board_.Flush();
  EXPECT_NE((*ledger_.Meta())["sync"], "as it was");
}

TEST_F(SyncBoardTest, ForgetsTheOldestBarriersAndEvents) {
  for (size_t step = 0; step < 2 * SyncBoard::kMostKept; ++step) {
    const std::string name = "step-" + std::to_string(step);
    for (const ReplicaRef& worker : two_workers_) {
      board_.Arrive(name, worker, two_workers_, std::nullopt, Awaited().reply());
    }
    board_.Notify(name);
  }

  SyncBoard loaded = Reload();

  EXPECT_LT((*ledger_.Meta())["sync"].size(), 100 * SyncBoard::kMostKept);
  const std::string last = "step-" + std::to_string(2 * SyncBoard::kMostKept - 1);
  const Awaited late;
  const Awaited event;
  loaded.Arrive(last, Worker(7), two_workers_, std::nullopt, late.reply());
  loaded.AwaitEvent(last, std::nullopt, event.reply());
  EXPECT_TRUE(late.IsTrue()) << "it was passed";
  EXPECT_TRUE(event.IsTrue());
}

TEST_F(SyncBoardTest, WritesNothingForSomebodyWhoTookNoPart) {
  board_.Notify("event");
  board_.Flush();
  ledger_.PutMeta("sync", "untouched");

  board_.ReplicaGone(Worker(0));
  board_.SessionGone(kOne);
  board_.Flush();

  ASSERT_EQ(ledger_.Commit(), Ok());
  EXPECT_EQ((*ledger_.Meta())["sync"], "untouched");
}

TEST_F(SyncBoardTest, RefusesADamagedRecord) {
  for (const char* damaged :
       {"{", "[]", R"({"barriers": 1})", R"({"barriers": {}, "events": []})"}) {
    SyncBoard loaded(ledger_);
    EXPECT_EQ(loaded.Load(damaged).code(), Code::kDataLoss) << damaged;
  }
}

}  // namespace
}  // namespace edl::master
