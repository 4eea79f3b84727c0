#include "master/shards/end_rule.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Sessions with an incarnation and a replica each. The call of a session has the number of its
// incarnation.
class EndRuleTest : public ::testing::Test {
 protected:
  void Lease(uint64_t session, ReplicaRef replica) {
    rule_.AddLease(Incarnation(session), replica);
  }
  void Report(uint64_t session, ReplicaRef replica) {
    rule_.RemoveLease(Incarnation(session), replica);
  }
  void Wait(uint64_t session, ReplicaRef replica) {
    rule_.AddWait(Incarnation(session), replica);
    waiters_.push_back({.call = session, .session = Incarnation(session), .replica = replica});
  }
  std::vector<uint64_t> Finished(bool chief_expected = false) {
    return rule_.CallsToFinish(waiters_, chief_expected);
  }

  EndRule rule_;
  WaiterQueue::Waiters waiters_;
};

TEST_F(EndRuleTest, FinishesNobodyWhileAHolderTrains) {
  Lease(1, Worker(1));
  Lease(2, Worker(2));
  Wait(2, Worker(2));

  EXPECT_THAT(Finished(), IsEmpty());
}

TEST_F(EndRuleTest, FinishesEveryoneWhenNoLeaseIsOpen) {
  Wait(1, Worker(1));
  Wait(2, Worker(2));

  EXPECT_THAT(Finished(), ElementsAre(1, 2));
}

TEST_F(EndRuleTest, FinishesAllButTheOldestWhenEveryHolderWaits) {
  Lease(1, Worker(1));
  Lease(2, Worker(2));
  Lease(3, Worker(3));
  Wait(3, Worker(3));
  Wait(1, Worker(1));
  Wait(2, Worker(2));

  EXPECT_THAT(Finished(), ElementsAre(3, 2));
}

TEST_F(EndRuleTest, FinishesTheOldestWhenItIsTheOnlyHolder) {
  Lease(1, Worker(1));
  Lease(2, Worker(2));
  Wait(1, Worker(1));
  Report(2, Worker(2));

  EXPECT_THAT(Finished(), ElementsAre(1));
}

TEST_F(EndRuleTest, FinishesAnExpectedChiefLast) {
  Lease(1, Worker(1));
  Lease(9, Chief());
  Wait(1, Worker(1));
  Wait(9, Chief());

  EXPECT_THAT(Finished(/*chief_expected=*/true), ElementsAre(1));
  EXPECT_THAT(Finished(/*chief_expected=*/false), ElementsAre(9));
}

TEST_F(EndRuleTest, DoesNotWaitForAChiefThatNeverReadTheDataset) {
  Lease(1, Worker(1));
  Lease(2, Worker(2));
  Wait(1, Worker(1));
  Wait(2, Worker(2));

  EXPECT_THAT(Finished(/*chief_expected=*/true), ElementsAre(2));
}

TEST_F(EndRuleTest, FinishesASessionAgainThatWasAnsweredBefore) {
  Lease(1, Worker(1));
  Lease(2, Worker(2));
  Wait(2, Worker(2));
  rule_.MarkAnsweredBefore(Incarnation(2));

  EXPECT_THAT(Finished(), ElementsAre(2));

  rule_.ForgetAnswers();
  EXPECT_THAT(Finished(), IsEmpty());
}

TEST_F(EndRuleTest, ForgetsThatASessionWasAnsweredWhenItsLastCallEnds) {
  Lease(1, Worker(1));
  Wait(2, Worker(2));
  rule_.MarkAnsweredBefore(Incarnation(2));

  rule_.RemoveWait(Incarnation(2), Worker(2));
  rule_.AddWait(Incarnation(2), Worker(2));

  EXPECT_THAT(Finished(), IsEmpty());
}

TEST_F(EndRuleTest, SeesAnotherReplicaThatHoldsOrWaits) {
  Lease(1, Worker(1));
  EXPECT_FALSE(rule_.AnyOtherThan(Worker(1)));
  EXPECT_TRUE(rule_.AnyOtherThan(Worker(2)));

  Wait(2, Worker(2));
  EXPECT_TRUE(rule_.AnyOtherThan(Worker(1)));
}

}  // namespace
}  // namespace edl::master
