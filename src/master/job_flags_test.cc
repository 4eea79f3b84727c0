// The effects of single flags.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/core.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using job::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ReplicaRef kPs0{job::Role::kPs, 0};
const ReplicaRef kPs1{job::Role::kPs, 1};

std::vector<std::string> NamesOf(const std::vector<LaunchCommand>& launches) {
  std::vector<std::string> names;
  for (const LaunchCommand& launch : launches) names.push_back(launch.name);
  return names;
}

// --task_fault_tolerance=false

job::JobSpec WithoutFaultTolerance(int num_workers) {
  job::JobSpec spec = WorkersOnly(num_workers);
  spec.task_fault_tolerance = false;
  return spec;
}

TEST(WithoutTaskFaultTolerance, AFailedShardIsNotLeasedAgainAndDoesNotFailTheJob) {
  CoreFixture master(WithoutFaultTolerance(1));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));

  worker.Report(worker.Lease(), ShardOutcome::kFailed, "bad record 7");
  worker.Report(worker.Lease());

  EXPECT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);
  EXPECT_EQ(master.Data().shards_quarantined, 1);
  EXPECT_TRUE(master.Data().finished);
  master.Exit(NameOf(Worker(0)), Succeeded());
  EXPECT_EQ(master.state(), JobState::kSucceeded) << master.core().View().reason;
  EXPECT_EQ(master.core().View().success_rule,
            "10 records were reported; 1 shard(s) were quarantined and not trained");
  EXPECT_THAT(master.core().View().remarks,
              ElementsAre("dataset 'train': 1 shard(s) were quarantined and not trained; the first "
                          "error: bad record 7"));
}

TEST(WithoutTaskFaultTolerance, AShardOfALostWorkerGoesToNobody) {
  CoreFixture master(WithoutFaultTolerance(2));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient lost(master, Worker(0));
  OurClient other(master, Worker(1));
  lost.Lease();
  other.Report(other.Lease());

  master.Exit(NameOf(Worker(0)), Killed());

  EXPECT_EQ(other.Ask()->answer, LeaseAnswer::kFinished);
  EXPECT_EQ(master.Data().shards_repeated, 0);
  EXPECT_EQ(master.Data().shards_quarantined, 1);
  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(WithoutTaskFaultTolerance, AShardThatIsGivenBackUntrainedIsLeasedAgain) {
  CoreFixture master(WithoutFaultTolerance(1));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard first = worker.Lease();

  worker.Report(first, ShardOutcome::kGivenBack);

  EXPECT_EQ(worker.Lease().key, first.key);
  EXPECT_EQ(master.Data().shards_quarantined, 0);
}

TEST(WithoutTaskFaultTolerance, ALeaseWhoseHolderIsGoneAfterARestartOfTheMasterIsNotGivenToOthers) {
  CoreFixture master(WithoutFaultTolerance(1));
  master.StartReplicas();
  master.Register(Shards(1));
  master.FetchShard(Worker(0));
  master.CrashAndReload(/*synced=*/false);
  master.TakeLaunches();

  master.Exit(NameOf(Worker(0)), Killed());
  master.Synced();

  EXPECT_EQ(master.Data().shards_quarantined, 1);
  EXPECT_TRUE(master.Data().finished);
}

// --need_task_manager=false

TEST(WithoutTaskManager, DatasetsAndLeasesAreRefusedWithTheReason) {
  job::JobSpec spec = WorkersOnly(1);
  spec.need_task_manager = false;
  CoreFixture master(spec);
  master.StartReplicas();

  const Status registered = master.core().Register(Shards(1)).status();
  EXPECT_THAT(registered, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(registered.message(), HasSubstr("--need_task_manager=false"));
  OurClient worker(master, Worker(0));
  EXPECT_THAT(worker.Ask().result().status().message(), HasSubstr("--need_task_manager=false"));
  const CoreFixture::HeldFetch fetch = master.Fetch(Worker(0));
  ASSERT_TRUE(fetch.answer.answered()) << "nobody will ever register a dataset";
  EXPECT_THAT(fetch.answer.result(), StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(master.core().Restore("{}", 1), StatusIs(Code::kFailedPrecondition));
}

TEST(WithoutTaskManager, TheJobSucceedsWithItsWorkers) {
  job::JobSpec spec = WorkersOnly(1);
  spec.need_task_manager = false;
  CoreFixture master(spec);
  master.StartReplicas();

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
}

// --minibatch_size, --num_epochs, --num_minibatches_per_task

TEST(DatasetDefaults, AreTheJobsWhereAProgramGivesNone) {
  job::JobSpec spec = WorkersOnly(1);
  spec.minibatch_size = 7;
  spec.num_epochs = 3;
  spec.num_minibatches_per_task = 4;
  CoreFixture master(spec);

  const Dataset& bare = master.Register({.name = "bare", .size = 100, .epochs = 0});
  const Dataset& given = master.Register(
      {.name = "given", .size = 100, .batch_size = 5, .batches_per_shard = 2, .epochs = 1});
  const Dataset& endless = master.Register({.name = "endless", .size = 100, .epochs = -1});

  EXPECT_EQ(bare.spec().batch_size, 7);
  EXPECT_EQ(bare.spec().epochs, 3);
  EXPECT_EQ(bare.spec().batches_per_shard, 4);
  EXPECT_EQ(given.spec().batch_size, 5);
  EXPECT_EQ(given.spec().epochs, 1);
  EXPECT_EQ(given.spec().batches_per_shard, 2);
  EXPECT_TRUE(endless.endless());
}

// --ps_is_critical=false

TEST(PsIsCritical, ALostPsFailsTheJobOnlyThen) {
  for (const bool critical : {true, false}) {
    job::JobSpec spec = TensorFlowJob(1, 1, 0);
    spec.ps_relaunch_max_num = 0;
    spec.ps_is_critical = critical;
    CoreFixture master(spec);
    master.StartReplicas();

    master.Exit(NameOf(kPs0), Failed());

    EXPECT_EQ(master.state(), critical ? JobState::kFinishing : JobState::kRunning);
    EXPECT_THAT(NamesOf(master.TakeLaunches()), IsEmpty());
    if (critical) continue;
    master.Exit(NameOf(Chief()), Succeeded());
    master.Exit(NameOf(Worker(0)), Succeeded());
    EXPECT_EQ(master.state(), JobState::kSucceeded);
  }
}

// --launch_worker_after_ps_running=on

TEST(LaunchWorkerAfterPsRunning, HoldsWorkersOtherThanZeroBackUntilEveryPsRuns) {
  job::JobSpec spec = WorkersOnly(3);
  spec.num_ps = 2;
  spec.launch_worker_after_ps_running = true;
  CoreFixture master(spec);
  master.Synced();
  EXPECT_THAT(NamesOf(master.TakeLaunches()),
              ElementsAre(NameOf(kPs0), NameOf(kPs1), NameOf(Worker(0))));

  master.Running(NameOf(kPs0));
  master.Running(NameOf(Worker(0)));
  EXPECT_THAT(NamesOf(master.TakeLaunches()), IsEmpty());
  master.Running(NameOf(kPs1));

  EXPECT_THAT(NamesOf(master.TakeLaunches()), ElementsAre(NameOf(Worker(1)), NameOf(Worker(2))));
}

TEST(LaunchWorkerAfterPsRunning, DoesNotWaitForAPsThatIsGivenUp) {
  job::JobSpec spec = WorkersOnly(2);
  spec.num_ps = 1;
  spec.ps_relaunch_max_num = 0;
  spec.ps_is_critical = false;
  spec.launch_worker_after_ps_running = true;
  CoreFixture master(spec);
  master.Synced();
  master.TakeLaunches();

  master.Exit(NameOf(kPs0), Failed());

  EXPECT_THAT(NamesOf(master.TakeLaunches()), ElementsAre(NameOf(Worker(1))));
}

TEST(LaunchWorkerAfterPsRunning, IsKeptByAMasterThatIsRestarted) {
  job::JobSpec spec = WorkersOnly(2);
  spec.num_ps = 1;
  spec.launch_worker_after_ps_running = true;
  CoreFixture master(spec);
  master.Synced();
  master.TakeLaunches();

  master.CrashAndReload();

  for (const std::string& name : NamesOf(master.TakeLaunches())) {
    EXPECT_NE(name, NameOf(Worker(1)));
  }
  master.Running(NameOf(kPs0));
  EXPECT_THAT(NamesOf(master.TakeLaunches()), ElementsAre(NameOf(Worker(1))));
}

}  // namespace
}  // namespace edl::master
