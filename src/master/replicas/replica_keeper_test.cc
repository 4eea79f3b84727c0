#include "master/replicas/replica_keeper.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using job::ReplicaState;
using job::Role;

constexpr int64_t kGiB = int64_t{1} << 30;

std::string WorkerName(int64_t id) { return NameOf(Worker(id)); }
std::string PsName(int64_t id) { return NameOf({Role::kPs, id}); }

// The one launch that there is to be; a test without it fails.
LaunchCommand OnlyLaunch(CoreFixture& master) {
  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  CHECK(launches.size() == 1, "{} launches instead of one", launches.size());
  return launches.front();
}

// Worker `id` reports a shard: a life with progress.
void MakeProgress(CoreFixture& master, int64_t id) {
  OurClient worker(master, Worker(id));
  worker.Report(worker.Lease());
}

TEST(ReplicaKeeper, LaunchesNothingBeforeTheBackendReportedAllReplicas) {
  CoreFixture master(WorkersOnly(2));
  master.LetPass(seconds(5));
  EXPECT_TRUE(master.TakeLaunches().empty());

  master.Synced();

  EXPECT_EQ(master.TakeLaunches().size(), 2u);
}

TEST(ReplicaKeeper, LaunchesPsAndChiefBeforeWorkersAndEvaluator) {
  CoreFixture master(TensorFlowJob(1, 1, 1));
  master.Synced();

  std::vector<Role> roles;
  for (const LaunchCommand& launch : master.TakeLaunches()) roles.push_back(launch.replica.role);

  EXPECT_EQ(roles, (std::vector<Role>{Role::kPs, Role::kChief, Role::kWorker, Role::kEvaluator}));
}

// Ids of workers beyond the limit are ids of chiefs.
TEST(ReplicaKeeper, FailsTheJobWhenItsIdsAreUsedUp) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  const ReplicaRef last = Worker(ReplicaKeeper::kMostLaunches - 1);
  master.ledger().Put(
      ReplicaRow{.name = NameOf(last), .replica = last, .state = ReplicaState::kRunning});
  master.Commit();
  master.CrashAndReload();
  master.TakeLaunches();

  master.Exit(NameOf(last), Killed());
  master.Exit(WorkerName(0), Killed());  // the rest of the job

  EXPECT_TRUE(master.TakeLaunches().empty());
  EXPECT_EQ(master.state(), job::JobState::kFailed);
}

TEST(ReplicaKeeper, RefillsAKilledSlotAtOnceWithItsIndexAndANewId) {
  CoreFixture master(WorkersOnly(4));
  master.StartReplicas();

  master.Exit(WorkerName(0), Killed());

  const LaunchCommand launch = OnlyLaunch(master);
  EXPECT_EQ(launch.index, 0);
  EXPECT_EQ(launch.replica, Worker(4));
  EXPECT_EQ(launch.name, "iris-edljob-worker-4");
  EXPECT_TRUE(launch.relaunched);
  EXPECT_EQ(master.StateOf(WorkerName(0)), ReplicaState::kKilled);
  EXPECT_EQ(master.TakeAcknowledged(), (std::vector<std::string>{WorkerName(0)}));
}

TEST(ReplicaKeeper, NeverCountsKillsOfReplicasWithProgress) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 0;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Register(Shards(100));

  for (int64_t life = 0; life < 20; ++life) {
    MakeProgress(master, life);
    master.Exit(WorkerName(life), Killed());
    master.Running(OnlyLaunch(master).name);
  }

  EXPECT_EQ(master.state(), job::JobState::kRunning);
  EXPECT_EQ(master.core().View().relaunches, 20);
}

TEST(ReplicaKeeper, RelaunchesAFailureAtOnceThenWithBackOff) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Exit(WorkerName(0), Failed());
  master.Running(OnlyLaunch(master).name);

  master.Exit(WorkerName(2), Failed());
  EXPECT_TRUE(master.TakeLaunches().empty());
  master.LetPass(seconds(1));
  master.Running(OnlyLaunch(master).name);
  master.Exit(WorkerName(3), Failed());
  master.LetPass(milliseconds(1500));
  EXPECT_TRUE(master.TakeLaunches().empty());
  master.LetPass(milliseconds(500));

  EXPECT_EQ(OnlyLaunch(master).index, 0);
}

TEST(ReplicaKeeper, FailsTheJobWithTheLastLinesOnceASlotUsedUpItsRelaunches) {
  CoreFixture master(WorkersOnly(2));  // three relaunches
  master.StartReplicas();
  int64_t id = 0;
  for (const int64_t next : {2, 3, 4}) {
    master.Exit(WorkerName(id), Failed());
    master.LetPass(seconds(30));
    master.Running(OnlyLaunch(master).name);
    id = next;
  }
  ASSERT_EQ(master.state(), job::JobState::kRunning);

  master.Exit(WorkerName(id), Failed(), {"Traceback", "ValueError: bad model"});

  EXPECT_TRUE(master.TakeLaunches().empty());
  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{WorkerName(1)}));
  master.Exit(WorkerName(1), Killed());
  EXPECT_EQ(master.state(), job::JobState::kFailed);
  const job::JobView view = master.core().View();
  EXPECT_NE(view.reason.find(WorkerName(4)), std::string::npos) << view.reason;
  EXPECT_NE(view.reason.find("exit code 3"), std::string::npos) << view.reason;
  EXPECT_EQ(view.last_lines, (std::vector<std::string>{"Traceback", "ValueError: bad model"}));
  EXPECT_EQ(master.StateOf(WorkerName(1)), ReplicaState::kStopped);
}

TEST(ReplicaKeeper, CountsFailuresBySlotNotByJob) {
  job::JobSpec spec = WorkersOnly(2);
  spec.relaunch_on_worker_failure = 1;
  CoreFixture master(spec);
  master.StartReplicas();

  master.Exit(WorkerName(0), Failed());
  master.Exit(WorkerName(1), Failed());

  EXPECT_EQ(master.TakeLaunches().size(), 2u);
  EXPECT_EQ(master.state(), job::JobState::kRunning);
}

TEST(ReplicaKeeper, CountsFailuresOverAMasterRestart) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 1;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Exit(WorkerName(0), Failed());
  master.Running(OnlyLaunch(master).name);

  master.CrashAndReload();
  master.Exit(WorkerName(1), Failed());

  EXPECT_EQ(master.state(), job::JobState::kFailed);
}

// Lets the worker's slot die again and again without progress, for `time` or until the job ends.
void DieFor(CoreFixture& master, Duration time, int64_t id) {
  for (Duration passed{0}; passed < time && master.state() == job::JobState::kRunning;) {
    const std::vector<LaunchCommand> launches = master.TakeLaunches();
    if (launches.empty()) {
      master.LetPass(seconds(1));
      passed += seconds(1);
      continue;
    }
    master.Running(launches.front().name);
    master.Exit(launches.front().name, Killed());
    ASSERT_LT(++id, 1000);
  }
}

TEST(ReplicaKeeper, CountsAnyCauseAfterRepeatedReplicasWithoutProgress) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 0;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Register(Shards(100));
  MakeProgress(master, 0);
  master.Exit(WorkerName(0), Killed());

  // What keeps it from starting may pass: five deaths within seconds say nothing.
  DieFor(master, seconds(30), 1);
  ASSERT_EQ(master.state(), job::JobState::kRunning);
  DieFor(master, seconds(300), 100);

  EXPECT_EQ(master.state(), job::JobState::kFailed);
  EXPECT_NE(master.core().View().reason.find("without progress"), std::string::npos);
}

TEST(ReplicaKeeper, DelaysRelaunchesOfASlotThatExitsImmediately) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();

  int launches = 0;
  master.Exit(WorkerName(0), Killed());
  for (int second = 0; second < 30; ++second) {
    for (const LaunchCommand& launch : master.TakeLaunches()) {
      ++launches;
      master.Running(launch.name);
      master.Exit(launch.name, Killed());
    }
    master.LetPass(seconds(1));
  }

  EXPECT_GE(launches, 3);
  EXPECT_LE(launches, 8);
  EXPECT_EQ(master.state(), job::JobState::kRunning);
}

TEST(ReplicaKeeper, ContinuesWithoutASlotThatMakesNoProgress) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(1000));
  OurClient works(master, Worker(1));
  master.Exit(WorkerName(0), Killed());

  for (int i = 0; i < 40; ++i) {
    works.Report(works.Lease());
    DieFor(master, seconds(10), 0);
  }

  EXPECT_EQ(master.state(), job::JobState::kRunning);
  EXPECT_TRUE(master.TakeLaunches().empty());
  EXPECT_EQ(works.Report(works.Lease()), ReportVerdict::kAccepted);
}

TEST(ReplicaKeeper, RefusesMoreWorkersThanThereCanBe) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();

  EXPECT_EQ(master.core().Scale(2'000'000'000).code(), Code::kInvalidArgument);
}

TEST(ReplicaKeeper, TakesThirtySecondsForAPsProgress) {
  job::JobSpec spec = TensorFlowJob(1, 1, 0);
  spec.ps_relaunch_max_num = 0;
  CoreFixture master(spec);
  master.StartReplicas();

  for (int life = 0; life < 2 * ReplicaKeeper::kIdleLives; ++life) {
    master.LetPass(ReplicaKeeper::kReadyAfter);
    master.Exit(PsName(life), Killed());
    master.Running(OnlyLaunch(master).name);
  }

  EXPECT_EQ(master.state(), job::JobState::kRunning);
}

TEST(ReplicaKeeper, TakesNewBatchesForAPsProgress) {
  job::JobSpec spec = TensorFlowJob(1, 1, 0);
  spec.ps_relaunch_max_num = 0;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Register(Shards(100));
  OurClient worker(master, Worker(0));

  for (int life = 0; life < 2 * ReplicaKeeper::kIdleLives; ++life) {
    worker.Report(worker.Lease());
    master.Exit(PsName(life), Killed());
    master.Running(OnlyLaunch(master).name);
  }
  EXPECT_EQ(master.state(), job::JobState::kRunning);

  for (int life = 2 * ReplicaKeeper::kIdleLives; master.state() == job::JobState::kRunning;
       ++life) {
    ASSERT_LT(life, 4 * ReplicaKeeper::kIdleLives);
    master.Exit(PsName(life), Killed());
    master.LetPass(seconds(61));
    if (master.state() == job::JobState::kRunning) master.Running(OnlyLaunch(master).name);
    // The time that a ps serves counts as progress, so it dies right after it started.
  }
  EXPECT_NE(master.core().View().reason.find("without progress"), std::string::npos);
}

TEST(ReplicaKeeper, GrowsTheMemoryOfAReplicaThatRanOutOfIt) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 0;
  spec.resources[Role::kWorker].memory_limit_bytes = kGiB;
  CoreFixture master(spec);
  master.Synced();
  std::vector<double> gib;
  for (int64_t life = 0; life < 4; ++life) {
    const LaunchCommand launch = OnlyLaunch(master);
    gib.push_back(static_cast<double>(launch.memory_bytes) / kGiB);
    master.Running(launch.name);
    if (life == 2) {
      // What it grew to is kept over a restart of the master.
      master.CrashAndReload();
    }
    master.Exit(launch.name, OutOfMemory());
  }

  EXPECT_EQ(gib, (std::vector<double>{1, 1.5, 2.25, 3.375}));
  EXPECT_EQ(master.state(), job::JobState::kFailed) << "more than four times what was asked for";
}

TEST(ReplicaKeeper, CountsOutOfMemoryWhenNoLimitWasSet) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 0;
  CoreFixture master(spec);
  master.StartReplicas();

  master.Exit(WorkerName(0), OutOfMemory());

  EXPECT_EQ(master.state(), job::JobState::kFailed);
}

TEST(ReplicaKeeper, CountsAReplicaThatCouldNotBeLaunched) {
  job::JobSpec spec = WorkersOnly(1);
  spec.relaunch_on_worker_failure = 0;
  CoreFixture master(spec);
  master.Synced();

  master.Exit(WorkerName(0), {.kind = job::ExitCause::Kind::kNotLaunched,
                              .message = "could not be launched: no such file"});

  EXPECT_EQ(master.state(), job::JobState::kFailed);
  EXPECT_NE(master.core().View().reason.find("no such file"), std::string::npos);
}

TEST(ReplicaKeeper, ContinuesWithoutANonCriticalWorkerUnlessItIsTheLast) {
  job::JobSpec spec = WorkersOnly(2);
  spec.relaunch_on_worker_failure = 0;
  spec.critical_workers.kind = job::CriticalWorkers::Kind::kNone;
  CoreFixture master(spec);
  master.StartReplicas();

  master.Exit(WorkerName(0), Failed());
  EXPECT_EQ(master.state(), job::JobState::kRunning);
  EXPECT_TRUE(master.TakeLaunches().empty());
  master.CrashAndReload();
  EXPECT_TRUE(master.TakeLaunches().empty()) << "given up is given up";
  master.Exit(WorkerName(1), Failed());

  EXPECT_EQ(master.state(), job::JobState::kFailed);
}

TEST(ReplicaKeeper, FailsTheJobForACriticalWorkerBeyondItsOwnNumber) {
  job::JobSpec spec = WorkersOnly(2);
  spec.critical_workers = {.kind = job::CriticalWorkers::Kind::kListed, .relaunches = {{1, 0}}};
  CoreFixture master(spec);
  master.StartReplicas();

  master.Exit(WorkerName(1), Failed());

  EXPECT_EQ(master.state(), job::JobState::kFinishing);
}

TEST(ReplicaKeeper, BringsTheChiefBackWithAPsThatDiesAfterTheChiefSucceeded) {
  CoreFixture master(TensorFlowJob(1, 1, 0));
  master.StartReplicas();
  master.Exit(NameOf(Chief()), Succeeded());
  ASSERT_TRUE(master.TakeLaunches().empty());

  master.Exit(PsName(0), Killed());

  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].replica, (ReplicaRef{Role::kPs, 1}));
  EXPECT_EQ(launches[1].replica, Chief(1));
}

// What a restarted master finds.

TEST(ReplicaKeeperRestart, LaunchesAgainByNameWhatWasPending) {
  CoreFixture master(WorkersOnly(2));
  master.Synced();
  master.Running(WorkerName(0));

  master.CrashAndReload();

  const LaunchCommand launch = OnlyLaunch(master);
  EXPECT_EQ(launch.name, WorkerName(1));
  EXPECT_FALSE(launch.relaunched);
}

TEST(ReplicaKeeperRestart, CountsMissingReplicasAsKilled) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient gone(master, Worker(0));
  const LeasedShard lost = gone.Lease();

  master.CrashAndReload(/*synced=*/false);
  master.Running(WorkerName(1));
  master.Synced();

  EXPECT_EQ(master.StateOf(WorkerName(0)), ReplicaState::kKilled);
  EXPECT_EQ(OnlyLaunch(master).index, 0);
  OurClient other(master, Worker(1));
  EXPECT_EQ(other.Lease().key, lost.key);
}

TEST(ReplicaKeeperRestart, TakesExitsThatWereNotAcknowledged) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();

  master.CrashAndReload(/*synced=*/false);
  master.Running(WorkerName(1));
  master.Exit(WorkerName(0), Killed());
  master.Synced();

  EXPECT_EQ(OnlyLaunch(master).replica, Worker(2));
  EXPECT_EQ(master.TakeAcknowledged(), (std::vector<std::string>{WorkerName(0)}));
}

TEST(ReplicaKeeperRestart, AcknowledgesARecordedExitAndCountsItOnce) {
  job::JobSpec spec = WorkersOnly(2);
  spec.relaunch_on_worker_failure = 1;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Exit(WorkerName(0), Failed());

  master.CrashAndReload(/*synced=*/false);
  master.Running(WorkerName(1));
  master.Exit(WorkerName(0), Failed());  // told again: the acknowledgement was lost
  master.Synced();

  EXPECT_EQ(master.state(), job::JobState::kRunning);
  EXPECT_EQ(master.TakeAcknowledged(), (std::vector<std::string>{WorkerName(0)}));
  EXPECT_EQ(OnlyLaunch(master).name, WorkerName(2));
}

TEST(ReplicaKeeperRestart, StopsAReplicaThatIsNotInTheLedger) {
  CoreFixture master(WorkersOnly(1));

  master.Running("iris-edljob-worker-77");

  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{"iris-edljob-worker-77"}));
}

TEST(ReplicaKeeperRestart, LaunchesNothingForAJobThatIsBeingStopped) {
  CoreFixture master(WorkersOnly(2));
  master.Synced();
  master.Running(WorkerName(0));
  master.core().Stop("stopped by its user");
  master.Commit();

  master.CrashAndReload();

  EXPECT_TRUE(master.TakeLaunches().empty());
  EXPECT_EQ(master.state(), job::JobState::kFinishing);
}

// Scaling.

TEST(ReplicaKeeperScale, AddsWorkersWithTheMemoryOfTheirRole) {
  job::JobSpec spec = WorkersOnly(1);
  spec.resources[Role::kWorker].memory_limit_bytes = kGiB;
  CoreFixture master(spec);
  master.StartReplicas();

  ASSERT_EQ(master.core().Scale(2), Ok());
  master.Commit();

  const LaunchCommand launch = OnlyLaunch(master);
  EXPECT_EQ(launch.index, 1);
  EXPECT_EQ(launch.memory_bytes, kGiB);
  EXPECT_FALSE(launch.relaunched);
}

TEST(ReplicaKeeperScale, AddsAWorkerForEachProcessThatWaitsForOne) {
  CoreFixture master(WorkersOnly(1));
  master.Register(Shards(1));
  const auto at_backend = [](const std::string&) { return true; };
  const auto not_there = [](const std::string&) { return false; };

  ASSERT_OK(master.core().WantWorkers(1, not_there));
  EXPECT_EQ(master.core().keeper().WantedWorkers(), 1) << "worker 0 will be launched";
  master.Synced();
  ASSERT_OK(master.core().WantWorkers(1, not_there));
  EXPECT_EQ(master.core().keeper().WantedWorkers(), 1) << "its launch is on the way";
  ASSERT_OK(master.core().WantWorkers(1, at_backend));
  EXPECT_EQ(master.core().keeper().WantedWorkers(), 2) << "another process got it";
  ASSERT_OK(master.core().WantWorkers(3, at_backend));
  EXPECT_EQ(master.core().keeper().WantedWorkers(), 5);
}

TEST(ReplicaKeeperScale, AddsNoWorkerWhileOneWillBeRelaunched) {
  CoreFixture master(WorkersOnly(1));
  master.Register(Shards(1));
  master.StartReplicas();
  for (int64_t id = 0; id < 4; ++id) {
    master.Exit(WorkerName(id), Killed());
    if (id < 3) master.Running(WorkerName(id + 1));
  }

  ASSERT_OK(master.core().WantWorkers(1, [](const std::string&) { return true; }));

  EXPECT_EQ(master.core().keeper().WantedWorkers(), 1) << "worker 0 is relaunched after a delay";
}

TEST(ReplicaKeeperScale, StopsTheHighestSlotsAndDoesNotRefillThem) {
  CoreFixture master(WorkersOnly(3));
  master.StartReplicas();

  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Commit();

  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{WorkerName(1), WorkerName(2)}));
  master.Exit(WorkerName(2), Killed());
  EXPECT_EQ(master.StateOf(WorkerName(2)), ReplicaState::kStopped);
  master.CrashAndReload();
  EXPECT_TRUE(master.TakeLaunches().empty());
}

TEST(ReplicaKeeperScale, StopsAgainAfterARestartWhatIsNotWanted) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Commit();

  master.CrashAndReload();

  EXPECT_EQ(master.TakeStops(), (std::vector<std::string>{WorkerName(1)}));
}

TEST(ReplicaKeeperScale, RefillsASlotOnlyAfterItsOldProcessIsGone) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Commit();

  ASSERT_EQ(master.core().Scale(2), Ok());
  master.Commit();
  EXPECT_TRUE(master.TakeLaunches().empty()) << "worker 1 is still being stopped";
  master.Exit(WorkerName(1), Killed());

  const LaunchCommand launch = OnlyLaunch(master);
  EXPECT_EQ(launch.index, 1);
  master.Running(launch.name);
  master.LetPass(seconds(5));
  EXPECT_TRUE(master.TakeLaunches().empty());
}

TEST(ReplicaKeeperScale, DoesNotCountASlotThatGrowsBackAsARelaunch) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Exit(WorkerName(1), Killed());

  ASSERT_EQ(master.core().Scale(2), Ok());
  master.Commit();
  master.Running(OnlyLaunch(master).name);

  EXPECT_EQ(master.core().View().relaunches, 0);
  master.CrashAndReload();
  EXPECT_EQ(master.core().View().relaunches, 0);
  master.Exit(WorkerName(0), Killed());
  EXPECT_EQ(master.core().View().relaunches, 1);
}

TEST(ReplicaKeeperScale, GrowsBackAfterAShrink) {
  CoreFixture master(TensorFlowJob(2, 0, 0));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Exit(WorkerName(1), Killed());

  ASSERT_EQ(master.core().Scale(2), Ok());
  master.Commit();

  EXPECT_EQ(OnlyLaunch(master).index, 1);
}

TEST(ReplicaKeeperScale, RefusesToGrowWhatTfConfigFixed) {
  CoreFixture master(TensorFlowJob(2, 0, 0));
  master.StartReplicas();

  const Status status = master.core().Scale(3);

  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("TF_CONFIG"), std::string::npos);
  EXPECT_EQ(master.core().Scale(0).code(), Code::kInvalidArgument);
}

TEST(ReplicaKeeperScale, IsKeptOverAMasterRestart) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(2), Ok());
  master.Commit();
  master.Running(OnlyLaunch(master).name);

  master.CrashAndReload();
  master.Exit(WorkerName(1), Killed());

  EXPECT_EQ(OnlyLaunch(master).index, 1);
}

}  // namespace
}  // namespace edl::master
