// A master whose replicas another controller runs: it leases shards to processes that join, and
// launches and ends nothing.
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

job::JobSpec OfATFJob() {
  job::JobSpec spec = WorkersOnly(1);
  spec.external_replicas = true;
  return spec;
}

class ExternalReplicas : public testing::Test {
 protected:
  ExternalReplicas() : master_(OfATFJob()) { master_.Synced(); }

  // The process opens the stream by which the master notices that it is gone.
  void Connect(const OurClient& client) {
    ASSERT_OK(master_.core().master_api().Watch(client.incarnation(), client.incarnation().value(),
                                                [](const Membership&) {}));
  }
  void Kill(const OurClient& client) {
    master_.FallSilent(client.incarnation());
    master_.core().master_api().Unwatch(client.incarnation(), client.incarnation().value());
    master_.LetPass(seconds(2));
  }
  int64_t Members() { return master_.core().master_api().CurrentMembership().count; }

  CoreFixture master_;
};

TEST_F(ExternalReplicas, AreNotLaunchedAndTheJobRuns) {
  master_.LetPass(seconds(60));
  EXPECT_TRUE(master_.TakeLaunches().empty());
  EXPECT_EQ(master_.state(), job::JobState::kRunning);
}

TEST_F(ExternalReplicas, LeaseShardsUnderAnyIndex) {
  master_.Register(Shards(2));
  OurClient worker(master_, Worker(7));
  EXPECT_EQ(worker.Report(worker.Lease()), ReportVerdict::kAccepted);
  EXPECT_EQ(master_.Data().records_done, 10);
}

TEST_F(ExternalReplicas, ThatAreKilledLoseTheirShardsToTheNextProcessOfTheSameIndex) {
  master_.Register(Shards(1));
  OurClient first(master_, Worker(0));
  Connect(first);
  const LeasedShard lost = first.Lease();

  Kill(first);
  OurClient second(master_, Worker(0));

  const LeasedShard again = second.Lease();
  EXPECT_EQ(again.start, lost.start);
  EXPECT_EQ(second.Report(again), ReportVerdict::kAccepted);
  EXPECT_EQ(master_.Data().records_done, 10);
}

TEST_F(ExternalReplicas, KeepTheirShardsOverARestartOfTheMaster) {
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  const LeasedShard shard = worker.Lease();

  master_.CrashAndReload(false);
  master_.Synced();

  EXPECT_EQ(Members(), 1);
  EXPECT_EQ(worker.Rejoin({shard.lease}), (std::vector<LeaseId>{shard.lease}));
  EXPECT_EQ(worker.Report(shard), ReportVerdict::kAccepted);
}

TEST_F(ExternalReplicas, LoseTheirShardsIfTheyDoNotComeBackToARestartedMaster) {
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  Connect(worker);
  worker.Lease();
  master_.FallSilent(worker.incarnation());

  master_.CrashAndReload(false);
  master_.Synced();
  master_.LetPass(MasterApi::kRejoinAfterRestart);
  EXPECT_EQ(master_.Data().leases, 1);
  master_.LetPass(seconds(1));

  EXPECT_EQ(master_.Data().leases, 0);
  EXPECT_EQ(Members(), 0);
}

TEST_F(ExternalReplicas, AreMembersWhileTheyHaveASession) {
  OurClient first(master_, Worker(0));
  OurClient second(master_, Worker(1));
  Connect(first);
  EXPECT_EQ(Members(), 2);
  Kill(first);
  EXPECT_EQ(Members(), 1);
}

TEST_F(ExternalReplicas, WaitForEachOtherAtABarrierUntilOneIsLost) {
  OurClient first(master_, Worker(0));
  OurClient second(master_, Worker(1));
  Connect(second);
  Later<bool> ready;
  master_.core().master_api().Arrive(first.incarnation(), "epoch", std::chrono::hours(1),
                                     ready.reply());
  master_.Commit();
  EXPECT_FALSE(ready.answered());

  Kill(second);

  ASSERT_TRUE(ready.answered());
  EXPECT_TRUE(*ready);
}

TEST_F(ExternalReplicas, AreToldOfTheEndOfTheDataAndTheJobGoesOn) {
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  worker.Report(worker.Lease());
  EXPECT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);

  master_.LetPass(std::chrono::minutes(10));

  EXPECT_EQ(master_.state(), job::JobState::kRunning);
}

TEST_F(ExternalReplicas, LetTheChiefEndLast) {
  master_.Register(Shards(2));
  OurClient chief(master_, Chief());
  OurClient worker(master_, Worker(0));
  const LeasedShard of_chief = chief.Lease();
  const LeasedShard of_worker = worker.Lease();
  const auto chief_waits = chief.ReportAndLease({{.lease = of_chief.lease}}, 1);
  // The worker can report its last shard only when it knows that the data has ended.
  const auto worker_waits = worker.Ask();
  EXPECT_EQ(worker_waits->answer, LeaseAnswer::kFinished);
  EXPECT_FALSE(chief_waits.answered());

  worker.Report(of_worker);

  ASSERT_TRUE(chief_waits.answered());
  EXPECT_EQ(chief_waits->answer, LeaseAnswer::kFinished);
}

TEST_F(ExternalReplicas, CannotBeScaledByTheMaster) {
  EXPECT_EQ(master_.core().Scale(3).code(), Code::kFailedPrecondition);
}

TEST_F(ExternalReplicas, EndTheJobWhenTheProgramFailsIt) {
  OurClient worker(master_, Worker(0));
  master_.core().OnFail(Worker(0), "cannot read the data");
  master_.LetPass(seconds(1));
  EXPECT_EQ(master_.state(), job::JobState::kFailed);
  EXPECT_TRUE(master_.TakeStops().empty());
}

}  // namespace
}  // namespace edl::master
