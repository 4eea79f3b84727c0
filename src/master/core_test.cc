#include "master/core.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using job::JobState;
using job::Role;
using testing::HasSubstr;

const ReplicaRef kEvaluator{Role::kEvaluator, 0};
const ReplicaRef kPs{Role::kPs, 0};

TEST(JobStates, GoFromStartingOverRunningToSucceeded) {
  CoreFixture master(WorkersOnly(1));
  master.Synced();
  EXPECT_EQ(master.state(), JobState::kStarting);
  master.Running(NameOf(Worker(0)));
  EXPECT_EQ(master.state(), JobState::kRunning);
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  ASSERT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_TRUE(master.core().View().remarks.empty());
  EXPECT_GT(master.core().View().ended_at, 0);
}

TEST(JobStates, WaitForAllWorkersAndTheChief) {
  CoreFixture master(TensorFlowJob(1, 0, 0));
  master.StartReplicas();

  master.Exit(NameOf(Worker(0)), Succeeded());
  EXPECT_EQ(master.state(), JobState::kRunning);
  master.Exit(NameOf(Chief()), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
}

TEST(JobStates, DoNotWaitForAPendingWorkerOnceAllIsDone) {
  CoreFixture master(WorkersOnly(2));
  master.Synced();
  master.Running(NameOf(Worker(0)));
  master.Pending(NameOf(Worker(1)), "0/2 nodes are available");
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  EXPECT_TRUE(master.TakeStops().empty());

  worker.Report(shard);
  master.LetPass(seconds(1));
  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{NameOf(Worker(1))}));
  master.Exit(NameOf(Worker(1)), Killed());
  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
}

TEST(JobStates, DoNotWaitForAPendingWorkerOnceTheChiefSucceeded) {
  CoreFixture master(TensorFlowJob(1, 0, 0));
  master.Synced();
  master.Running(NameOf(Chief()));
  master.Pending(NameOf(Worker(0)), "0/2 nodes are available");

  master.Exit(NameOf(Chief()), Succeeded());
  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{NameOf(Worker(0))}));
  master.Exit(NameOf(Worker(0)), Killed());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
}

TEST(JobStates, ReachTheEndOfAJobWhoseWorkersRanWhileTheMasterWasAway) {
  CoreFixture master(WorkersOnly(1));
  master.Synced();

  master.CrashAndReload(/*synced=*/false);
  master.Exit(NameOf(Worker(0)), Succeeded());
  master.Synced();

  EXPECT_EQ(master.state(), JobState::kSucceeded);
}

TEST(JobStates, StopThePsAtTheEndWithoutCallingItAFailure) {
  CoreFixture master(TensorFlowJob(1, 1, 0));
  master.StartReplicas();
  master.Exit(NameOf(Worker(0)), Succeeded());
  master.Exit(NameOf(Chief()), Succeeded());
  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{NameOf(kPs)}));
  EXPECT_EQ(master.state(), JobState::kFinishing);

  master.Exit(NameOf(kPs), Killed());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_EQ(master.StateOf(NameOf(kPs)), job::ReplicaState::kStopped);
}

TEST(JobStates, EndWhenTheReplicasAreGoneAndNotBefore) {
  CoreFixture master(TensorFlowJob(1, 1, 0));
  master.StartReplicas();
  master.Exit(NameOf(Worker(0)), Succeeded());
  master.Exit(NameOf(Chief()), Succeeded());

  master.LetPass(std::chrono::minutes(10));
  EXPECT_EQ(master.state(), JobState::kFinishing);
  EXPECT_GT(master.TakeStops().size(), 5u) << "it is told again and again";
  master.Exit(NameOf({job::Role::kPs, 0}), Killed());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
}

TEST(JobStates, KeepAStopOverAMasterRestart) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.core().Stop("elasticdl stop");
  master.Commit();
  EXPECT_EQ(master.state(), JobState::kFinishing);

  master.CrashAndReload();
  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{NameOf(Worker(0))}));
  master.Exit(NameOf(Worker(0)), Killed());

  EXPECT_EQ(master.state(), JobState::kStopped);
  EXPECT_EQ(master.core().View().reason, "elasticdl stop");
  EXPECT_EQ(master.core().View().master_starts, 2);
}

TEST(JobStates, RunAgainWhenAnEndedJobIsResumed) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 0;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Register(Shards(3));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  master.Exit(NameOf(Worker(0)), Failed());
  ASSERT_EQ(master.state(), JobState::kFailed);

  master.spec().resume_number = 1;
  master.CrashAndReload();

  EXPECT_EQ(master.state(), JobState::kRunning);
  EXPECT_EQ(master.Data().records_done, 10);
  EXPECT_EQ(master.TakeLaunches().size(), 1u);
  EXPECT_TRUE(master.core().View().reason.empty());
}

TEST(JobStates, RefuseToScaleAJobThatEnds) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.core().Stop("elasticdl stop");

  EXPECT_THAT(master.core().Scale(2), StatusIs(Code::kFailedPrecondition));
}

// The grace time of the evaluator.

class EvaluatorGrace : public ::testing::Test {
 protected:
  // Training is over and the chief has saved step 470.
  void SetUp() override {
    master_.StartReplicas();
    master_.Log(Chief(), "Saving checkpoints for 470 into /tmp/x\n");
    master_.Exit(NameOf(Worker(0)), Succeeded());
    master_.Exit(NameOf(Chief()), Succeeded());
    ASSERT_EQ(master_.state(), JobState::kFinishing);
    ASSERT_TRUE(master_.TakeStops().empty());
  }

  CoreFixture master_{TensorFlowJob(1, 0, 1)};
};

TEST_F(EvaluatorGrace, EndsWhenTheLastCheckpointIsEvaluated) {
  master_.Log(kEvaluator, "Saving dict for global step 300: loss = 1\n");
  EXPECT_TRUE(master_.TakeStops().empty());

  master_.Log(kEvaluator, "Saving dict for global step 470: loss = 0.5\n");

  EXPECT_EQ(master_.TakeStops(), (std::vector<std::string>{NameOf(kEvaluator)}));
  master_.Exit(NameOf(kEvaluator), Killed());
  EXPECT_EQ(master_.state(), JobState::kSucceeded);
  EXPECT_TRUE(master_.core().View().remarks.empty());
}

TEST_F(EvaluatorGrace, EndsWhenTheEvaluatorExits) {
  master_.Exit(NameOf(kEvaluator), Succeeded());

  EXPECT_EQ(master_.state(), JobState::kSucceeded);
}

TEST_F(EvaluatorGrace, EndsAfterItsTimeWithARemark) {
  master_.LetPass(seconds(60));
  EXPECT_TRUE(master_.TakeStops().empty());
  master_.LetPass(seconds(1));

  EXPECT_EQ(master_.TakeStops(), (std::vector<std::string>{NameOf(kEvaluator)}));
  master_.Exit(NameOf(kEvaluator), Killed());
  EXPECT_EQ(master_.state(), JobState::kSucceeded);
  ASSERT_EQ(master_.core().View().remarks.size(), 1u);
  EXPECT_NE(master_.core().View().remarks.front().find("470"), std::string::npos);
}

TEST_F(EvaluatorGrace, EndsAtOnceWhenTheEvaluatorSaysThatItWaitsLonger) {
  master_.Log(kEvaluator, "INFO:tensorflow:Waiting 30.0 secs before starting eval.\n");
  EXPECT_TRUE(master_.TakeStops().empty()) << "it may be in time";

  master_.Log(kEvaluator, "INFO:tensorflow:Waiting 120.0 secs before starting next eval run.\n");
  master_.LetPass(seconds(1));

  EXPECT_EQ(master_.TakeStops(), (std::vector<std::string>{NameOf(kEvaluator)}));
  ASSERT_EQ(master_.core().View().remarks.size(), 1u);
  EXPECT_NE(master_.core().View().remarks.front().find("EvalSpec"), std::string::npos);
}

TEST_F(EvaluatorGrace, ContinuesOverARestartOfTheMaster) {
  master_.CrashAndReload();
  master_.LetPass(seconds(30));

  EXPECT_EQ(master_.state(), JobState::kFinishing);
  EXPECT_TRUE(master_.TakeStops().empty());
}

// Leftover shards.

TEST(Leftovers, AreLeasedOnceMoreToAFreshWorker) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient drops(master, Worker(0));
  drops.Report(drops.Lease());
  const LeasedShard dropped = drops.Lease();
  ASSERT_EQ(drops.Ask()->answer, LeaseAnswer::kFinished);

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kRunning);
  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  master.Running(launches.front().name);
  OurClient fresh(master, launches.front().replica);
  const LeasedShard again = fresh.Lease();
  EXPECT_EQ(again.key, dropped.key);
  fresh.Report(again);
  master.Exit(launches.front().name, Succeeded());
  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_TRUE(master.core().View().remarks.empty());
}

TEST(Leftovers, CountAsNotTrainedWhenTheyAreDroppedAgain) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient drops(master, Worker(0));
  drops.Report(drops.Lease());
  drops.Lease();
  ASSERT_EQ(drops.Ask()->answer, LeaseAnswer::kFinished);
  master.Exit(NameOf(Worker(0)), Succeeded());
  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  master.Running(launches.front().name);
  OurClient fresh(master, launches.front().replica);
  fresh.Lease();
  ASSERT_EQ(fresh.Ask()->answer, LeaseAnswer::kFinished);

  master.Exit(launches.front().name, Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_EQ(master.Data().records_not_trained, 10);
  ASSERT_EQ(master.core().View().remarks.size(), 1u);
  EXPECT_NE(master.core().View().remarks.front().find("10 of 20 records"), std::string::npos);
}

TEST(Leftovers, AreLeasedAgainWhenTheFreshWorkerLostThemByItsSilence) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient drops(master, Worker(0));
  drops.Lease();
  ASSERT_EQ(drops.Ask()->answer, LeaseAnswer::kFinished);
  master.Exit(NameOf(Worker(0)), Succeeded());
  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  master.Running(launches.front().name);
  OurClient frozen(master, launches.front().replica);
  frozen.Lease();
  ASSERT_EQ(frozen.Ask()->answer, LeaseAnswer::kFinished);

  master.FallSilent(frozen.incarnation());
  master.LetPass(MasterApi::kSilence + seconds(1));
  master.Exit(launches.front().name, Succeeded());

  EXPECT_EQ(master.TakeLaunches().size(), 1u);
  EXPECT_EQ(master.Data().records_not_trained, 0);
}

TEST(Leftovers, AreLeasedAgainWhenTheMasterDiedWhileTheyWereWithTheFreshWorker) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(1));
  master.FetchShard(Worker(0));
  ASSERT_FALSE(master.Fetch(Worker(0)).answer->has_value());
  master.Exit(NameOf(Worker(0)), Succeeded());
  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  master.Running(launches.front().name);
  const ReplicaRef fresh = launches.front().replica;
  master.FetchShard(fresh);  // the answer may be lost when the master exits

  master.CrashAndReload();
  ASSERT_FALSE(master.Fetch(fresh).answer->has_value());
  master.Exit(launches.front().name, Succeeded());

  EXPECT_EQ(master.TakeLaunches().size(), 1u);
  EXPECT_EQ(master.Data().records_not_trained, 0);
}

TEST(Leftovers, OfProgramsThatDeclareTheirEndAreNotTrainedAtOnce) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(5));
  OurClient max_steps(master, Worker(0));
  max_steps.Report(max_steps.Lease());
  master.core().OnFinish(Worker(0));

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_EQ(master.Data().records_not_trained, 40);
}

TEST(Leftovers, OfAnEndlessDatasetDoNotExist) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(2, /*epochs=*/0));
  OurClient worker(master, Worker(0));
  worker.Lease();

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_TRUE(master.core().View().remarks.empty());
}

// Bad shards.

JobState EndWithOneBadShard(int64_t max_bad_shards, std::string* reason) {
  job::JobSpec spec = WorkersOnly(1);
  spec.max_bad_shards = max_bad_shards;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  for (int times = 0; times < Dataset::kMaxFailures; ++times) {
    worker.Report(worker.Lease(), ShardOutcome::kFailed, "bad record");
  }
  worker.Ask();
  master.Exit(NameOf(Worker(0)), Succeeded());
  *reason = master.core().View().reason;
  return master.state();
}

TEST(BadShards, FailTheJob) {
  std::string reason;

  EXPECT_EQ(EndWithOneBadShard(0, &reason), JobState::kFailed);
  EXPECT_NE(reason.find("--max_bad_shards"), std::string::npos) << reason;
}

TEST(BadShards, AreAllowedUpToTheUsersNumber) {
  std::string reason;

  EXPECT_EQ(EndWithOneBadShard(1, &reason), JobState::kSucceeded);
}

// Answers and the ledger.

TEST(CoreCommit, HoldsAnswersBackUntilTheLedgerHasThem) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const Later<ReportAndLeaseReply> answer;

  master.core().master_api().ReportAndLease({.call = master.NextCall(),
                                             .incarnation = worker.incarnation(),
                                             .number = 1,
                                             .dataset = kData,
                                             .lease_at_most = 1},
                                            answer.reply());
  EXPECT_FALSE(answer.answered());
  master.Commit();

  EXPECT_TRUE(answer.answered());
}

TEST(CoreView, ShowsLeasesByReplicaAndDataset) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(5));
  OurClient worker(master, Worker(1));
  worker.LeaseMany(2);

  const job::JobView view = master.core().View();

  ASSERT_EQ(view.replicas.size(), 2u);
  EXPECT_EQ(view.replicas[0].leases, 0);
  EXPECT_EQ(view.replicas[1].leases, 2);
  EXPECT_EQ(view.datasets.front().leases, 2);
}

TEST(CoreView, ReportsTheLedgerAsJson) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(5, /*epochs=*/2));
  OurClient worker(master, Worker(0));
  const std::vector<LeasedShard> shards = worker.LeaseMany(3);
  worker.Report(shards[0]);

  const auto json = nlohmann::json::parse(*master.core().LedgerJson());

  const auto& dataset = json.at("datasets").at(0);
  EXPECT_EQ(dataset.at("name"), kData);
  EXPECT_EQ(dataset.at("records_done"), 10);
  EXPECT_EQ(dataset.at("done").at("0"), nlohmann::json::parse("[[0, 0]]"));
  EXPECT_EQ(dataset.at("leases").size(), 2u);
  EXPECT_EQ(json.at("sessions").size(), 1u);
  EXPECT_EQ(json.at("replicas").at(0).at("state"), "running");
}

TEST(CoreLoad, RefusesADamagedLedgerByName) {
  for (const char* key : {"counters", "state", "sync", "rendezvous", "recent_calls"}) {
    Ledger ledger = *Ledger::Open(":memory:");
    ledger.PutMeta(key, "{damaged");
    ASSERT_EQ(ledger.Commit(), Ok());
    const job::JobSpec spec = WorkersOnly(1);
    Core core(ledger, spec, 1);

    const Status status = core.Load(Time(), WallTime());

    EXPECT_EQ(status.code(), Code::kDataLoss) << key;
    EXPECT_THAT(status.message(),
                HasSubstr(fmt::format("the entry '{}' of the ledger is damaged: ", key)));
  }
}

}  // namespace
}  // namespace edl::master
