#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

// The desired state of replicas: what should not run is told to end until it is gone, and a replica
// is given up only when its node and its own silence agree.
namespace edl::master {
namespace {

using job::JobState;
using job::ReplicaState;
using job::Role;
using Names = std::vector<std::string>;

std::string WorkerName(int64_t id) { return NameOf(Worker(id)); }

TEST(ReplicaStops, AreRepeatedUntilTheReplicaIsGone) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Commit();
  EXPECT_EQ(master.TakeStops(), Names{WorkerName(1)});

  master.LetPass(seconds(6));
  EXPECT_EQ(master.TakeStops(), Names{WorkerName(1)});
  master.LetPass(seconds(10));
  EXPECT_EQ(master.TakeStops(), Names{WorkerName(1)});
  master.Exit(WorkerName(1), Killed());
  master.LetPass(std::chrono::minutes(5));

  EXPECT_TRUE(master.TakeStops().empty());
}

TEST(ReplicaStops, OfAJobsEndIncludeWhatWasAskedToStopBefore) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Commit();
  master.TakeStops();

  master.core().Stop("elasticdl stop");
  master.Commit();

  EXPECT_EQ(master.TakeStops(), Names{WorkerName(0)});
  master.Exit(WorkerName(0), Killed());
  master.LetPass(seconds(6));
  EXPECT_EQ(master.TakeStops(), Names{WorkerName(1)});
  EXPECT_EQ(master.state(), JobState::kFinishing) << "worker 1 still runs";
  master.Exit(WorkerName(1), Killed());
  EXPECT_EQ(master.state(), JobState::kStopped);
}

TEST(ReplicaStops, StopAReplicaThatRunsAlthoughItsExitWasRecorded) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Exit(WorkerName(0), Killed());

  master.Running(WorkerName(0));

  EXPECT_EQ(master.TakeStops(), Names{WorkerName(0)});
  EXPECT_EQ(master.StateOf(WorkerName(0)), ReplicaState::kKilled);
}

TEST(ReplicaStops, StopAPendingReplicaThatIsNotInTheLedger) {
  CoreFixture master(WorkersOnly(1));

  master.Pending("iris-edljob-worker-77", "no room");

  EXPECT_EQ(master.TakeStops(), Names{"iris-edljob-worker-77"});
}

TEST(ReplicaStops, KeepTheJobFromEndingWhileAnUnknownReplicaRuns) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Running("iris-edljob-worker-77");
  master.core().Stop("elasticdl stop");
  master.Commit();
  master.Exit(WorkerName(0), Killed());
  EXPECT_EQ(master.state(), JobState::kFinishing);

  master.Exit("iris-edljob-worker-77", Killed());

  EXPECT_EQ(master.state(), JobState::kStopped);
}

TEST(ReplicaStops, DelayTheEndOfTheJobUntilTheBackendReportedAllReplicas) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.core().Stop("elasticdl stop");
  master.Commit();
  master.CrashAndReload(false);

  master.Exit(WorkerName(0), Killed());
  EXPECT_EQ(master.state(), JobState::kFinishing);
  master.Running("iris-edljob-worker-77");
  master.Synced();
  EXPECT_EQ(master.state(), JobState::kFinishing);
  master.Exit("iris-edljob-worker-77", Killed());

  EXPECT_EQ(master.state(), JobState::kStopped);
}

TEST(ReplicaRows, ArePrunedAndTheirCountsStay) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(10'000));
  constexpr int64_t kLives = 500;
  for (int64_t life = 1; life <= kLives; ++life) {
    const int64_t id = life == 1 ? 0 : life;
    OurClient worker(master, Worker(id));
    worker.Report(worker.Lease());
    master.Exit(WorkerName(id), Killed());
    for (const LaunchCommand& launch : master.TakeLaunches()) master.Running(launch.name);
  }

  const auto check = [&] {
    const job::JobView view = master.core().View();
    EXPECT_LE(view.replicas.size(), ReplicaKeeper::kKeptEnded + 2);
    EXPECT_EQ(static_cast<int64_t>(view.replicas.size()) + view.replicas_left_out, kLives + 2);
    EXPECT_EQ(view.relaunches, kLives);
    EXPECT_LE(master.ledger().Replicas()->size(), ReplicaKeeper::kKeptEnded + 2);
  };
  check();
  EXPECT_EQ(master.TryJoin({.replica = Worker(2), .process = "host:1"}).status().code(),
            Code::kFailedPrecondition)
      << "it ended long ago";
  // One more row, for which nothing is launched.
  ASSERT_EQ(master.core().Scale(1), Ok());
  master.Commit();
  master.Exit(WorkerName(1), Killed());
  master.LetPass(seconds(1));
  check();
  master.CrashAndReload();
  check();
  EXPECT_TRUE(master.TakeLaunches().empty());
}

TEST(ReplicaKeeperScale, RefusesMoreWorkersThanAJobMayHave) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();

  EXPECT_EQ(master.core().Scale(2'000'000'000).code(), Code::kInvalidArgument);
  EXPECT_EQ(master.core().Scale(0).code(), Code::kInvalidArgument);
}

TEST(LostNodes, KeepAReplicaThatHasASession) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  const OurClient worker(master, Worker(0));

  master.NodeOf(WorkerName(0), true);
  master.LetPass(std::chrono::minutes(10));

  EXPECT_EQ(master.StateOf(WorkerName(0)), ReplicaState::kRunning);
  EXPECT_TRUE(master.TakeStops().empty());
}

TEST(LostNodes, KeepASilentReplicaWhoseNodeIsNotLost) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  const OurClient worker(master, Worker(0));

  master.FallSilent(worker.incarnation());
  master.LetPass(std::chrono::minutes(10));

  EXPECT_EQ(master.StateOf(WorkerName(0)), ReplicaState::kRunning);
  EXPECT_TRUE(master.TakeStops().empty());
}

TEST(LostNodes, LoseAReplicaThatIsSilentToo) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.TakeLaunches();
  const OurClient worker(master, Worker(0));
  master.FallSilent(worker.incarnation());
  master.LetPass(MasterApi::kLongestSilence + seconds(1));

  master.NodeOf(WorkerName(0), true);
  master.LetPass(seconds(1));

  EXPECT_EQ(master.StateOf(WorkerName(0)), ReplicaState::kKilled);
  EXPECT_EQ(master.TakeStops(), Names{WorkerName(0)}) << "its node may come back";
  const std::vector<LaunchCommand> launches = master.TakeLaunches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches.front().index, 0);
}

TEST(LostNodes, LoseAReplicaThatNeverJoinsAfterATimeout) {
  CoreFixture master(TensorFlowJob(1, 1, 0));
  master.StartReplicas();
  const std::string ps = NameOf({Role::kPs, 0});

  master.NodeOf(ps, true);
  master.LetPass(seconds(20));
  EXPECT_EQ(master.StateOf(ps), ReplicaState::kRunning);
  master.NodeOf(ps, false);
  master.LetPass(seconds(60));
  EXPECT_EQ(master.StateOf(ps), ReplicaState::kRunning);
  master.NodeOf(ps, true);
  master.LetPass(seconds(31));

  EXPECT_EQ(master.StateOf(ps), ReplicaState::kKilled);
}

TEST(LostNodes, KeepAParameterServerThatAnswers) {
  job::JobSpec spec = WorkersOnly(1);
  spec.num_ps = 1;
  spec.own_ps = true;
  CoreFixture master(spec);
  master.StartReplicas();
  const std::string ps = NameOf({Role::kPs, 0});

  master.NodeOf(ps, true);
  for (int second = 0; second < 120; ++second) {
    master.core().OnServerState({.index = 0, .incarnation = PsIncarnation(7)});
    master.LetPass(seconds(1));
  }
  EXPECT_EQ(master.StateOf(ps), ReplicaState::kRunning);
  master.LetPass(seconds(11));

  EXPECT_EQ(master.StateOf(ps), ReplicaState::kKilled);
}

}  // namespace
}  // namespace edl::master
