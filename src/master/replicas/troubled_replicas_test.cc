#include "master/replicas/troubled_replicas.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

std::string ReasonOf(const CoreFixture& master, ReplicaRef replica) {
  for (const job::ReplicaView& view : master.core().View().replicas) {
    if (view.name == NameOf(replica)) return view.reason;
  }
  return "no such replica";
}

// A worker that sends heartbeats and never reports, beside one that works.
class HungWorker : public testing::Test {
 protected:
  void Start(int64_t shards) {
    master_.StartReplicas();
    master_.Register(Shards(shards));
    hung_.emplace(master_, Worker(0));
    works_.emplace(master_, Worker(1));
    works_->Report(works_->Lease());  // what a shard takes is known now
    shard_ = hung_->Lease();
  }
  void WorkQuickly(int shards) {
    for (int i = 0; i < shards; ++i) works_->Report(works_->Lease());
  }

  CoreFixture master_{WorkersOnly(2)};
  std::optional<OurClient> hung_;
  std::optional<OurClient> works_;
  LeasedShard shard_;
};

TEST_F(HungWorker, LosesItsShardAndIsNamed) {
  Start(2);
  const Later<ReportAndLeaseReply> waiting = works_->Ask();
  master_.LetPass(HangDetector::kHangAtLeast - seconds(1));
  EXPECT_FALSE(waiting.answered());

  master_.LetPass(seconds(62));

  ASSERT_TRUE(waiting.answered());
  EXPECT_EQ(waiting->answer, LeaseAnswer::kShards);
  EXPECT_EQ(waiting->shards.front().key, shard_.key);
  EXPECT_NE(ReasonOf(master_, Worker(0)).find("without a report"), std::string::npos);
  EXPECT_EQ(hung_->Report(shard_), ReportVerdict::kLost);
  EXPECT_EQ(ReasonOf(master_, Worker(0)), "");
}

TEST_F(HungWorker, GetsMoreTimeOnceItTurnedOutToBeSlow) {
  Start(10);
  master_.LetPass(seconds(370));
  ASSERT_EQ(hung_->Report(shard_), ReportVerdict::kLost);

  const LeasedShard again = hung_->Lease();
  master_.LetPass(seconds(600));

  EXPECT_EQ(hung_->Report(again), ReportVerdict::kAccepted);
}

TEST_F(HungWorker, KeepsShardsThatItGotTogetherWhileItReports) {
  Start(200);
  WorkQuickly(100);
  const std::vector<LeasedShard> shards = hung_->LeaseMany(5);
  hung_->Report(shard_);

  for (const LeasedShard& shard : shards) {
    master_.LetPass(seconds(200));
    EXPECT_EQ(hung_->Report(shard), ReportVerdict::kAccepted);
  }
}

TEST_F(HungWorker, GetsNoMoreTimeBecauseOneShardWasSlow) {
  Start(200);
  const LeasedShard slow = works_->Lease();
  master_.LetPass(seconds(290));
  ASSERT_EQ(works_->Report(slow), ReportVerdict::kAccepted);
  ASSERT_EQ(hung_->Report(shard_), ReportVerdict::kAccepted);
  WorkQuickly(100);

  const LeasedShard shard = hung_->Lease();
  master_.LetPass(HangDetector::kHangAtLeast + seconds(61));

  EXPECT_EQ(hung_->Report(shard), ReportVerdict::kLost);
}

TEST_F(HungWorker, IsReplacedIfTheUserWantsThat) {
  master_.spec().relaunch_timeout_worker = true;
  Start(2);

  master_.LetPass(HangDetector::kHangAtLeast + seconds(120));

  // It is told again until it is gone.
  const std::vector<std::string> stops = master_.TakeStops();
  EXPECT_EQ(std::set<std::string>(stops.begin(), stops.end()),
            (std::set<std::string>{NameOf(Worker(0))}));
  master_.Exit(NameOf(Worker(0)), Killed());
  const std::vector<LaunchCommand> launches = master_.TakeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches.front().index, 0);
}

TEST(FirstShard, MayTakeLongerThanTheLaterOnes) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();

  master.LetPass(std::chrono::minutes(55));

  EXPECT_EQ(worker.Report(shard), ReportVerdict::kAccepted);
}

TEST(FrozenWorker, DoesNotKeepAFinishedJob) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient frozen(master, Worker(0));
  OurClient works(master, Worker(1));
  frozen.Report(frozen.Lease());
  works.Report(works.Lease());
  ASSERT_EQ(works.Ask()->answer, LeaseAnswer::kFinished);
  master.Exit(NameOf(Worker(1)), Succeeded());

  master.FallSilent(frozen.incarnation());
  master.LetPass(seconds(60));
  EXPECT_NE(ReasonOf(master, Worker(0)).find("silent"), std::string::npos);
  EXPECT_TRUE(master.TakeStops().empty());
  master.LetPass(seconds(300));

  // It is told again until it is gone.
  const std::vector<std::string> stops = master.TakeStops();
  EXPECT_EQ(std::set<std::string>(stops.begin(), stops.end()),
            (std::set<std::string>{NameOf(Worker(0))}));
  master.Exit(NameOf(Worker(0)), Killed());
  master.LetPass(seconds(1));
  EXPECT_EQ(master.state(), job::JobState::kSucceeded);
  ASSERT_EQ(master.core().View().remarks.size(), 1u);
  EXPECT_NE(master.core().View().remarks.front().find("worker 0 was ended"), std::string::npos);
}

TEST(FrozenWorker, IsNoLongerTroubledAfterItRejoins) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient frozen(master, Worker(0));
  frozen.Report(frozen.Lease());
  master.FallSilent(frozen.incarnation());
  master.LetPass(seconds(60));
  ASSERT_NE(ReasonOf(master, Worker(0)), "");

  frozen.Rejoin({});

  EXPECT_EQ(ReasonOf(master, Worker(0)), "");
}

TEST(LateHeartbeats, OfNearlyAllSessionsExtendTheAllowedSilence) {
  CoreFixture master(WorkersOnly(3));
  master.Register(Shards(10));
  OurClient starved(master, Worker(0));
  OurClient other(master, Worker(1));
  const LeasedShard shard = starved.Lease();
  for (const OurClient* client : {&starved, &other}) master.FallSilent(client->incarnation());

  // Both come every 25 s: late, and not lost.
  for (int i = 0; i < 4; ++i) {
    master.LetPass(seconds(25));
    EXPECT_EQ(master.Heartbeat(other.incarnation()), Ok());
    EXPECT_EQ(master.Heartbeat(starved.incarnation()), Ok());
  }
  master.LetPass(seconds(45));  // longer than MasterApi::kSilence

  EXPECT_EQ(starved.Report(shard), ReportVerdict::kAccepted);
}

}  // namespace
}  // namespace edl::master
