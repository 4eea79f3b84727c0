#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/status_matchers.h"
#include "master/core.h"
#include "master/ledger/ledger_report.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using job::JobState;

// Rules of success.

class SuccessRuleTest : public ::testing::Test {
 protected:
  // One worker reports two of five shards and exits with 0, without the answer Finished.
  static void EndEarly(CoreFixture& master) {
    master.StartReplicas();
    master.Register(Shards(5));
    OurClient worker(master, Worker(0));
    worker.Report(worker.Lease());
    worker.Report(worker.Lease());
    master.Exit(NameOf(Worker(0)), Succeeded());
  }
};

TEST_F(SuccessRuleTest, FailsAJobWhoseWorkersLeaveInTheMiddleOfTheData) {
  CoreFixture master(WorkersOnly(1));

  EndEarly(master);

  EXPECT_EQ(master.state(), JobState::kFailed);
  EXPECT_NE(master.core().View().reason.find("30 of 50 records were left"), std::string::npos)
      << master.core().View().reason;
  EXPECT_NE(master.core().View().reason.find("finish()"), std::string::npos);
}

TEST_F(SuccessRuleTest, LetsAProgramDeclareItsEnd) {
  CoreFixture master(WorkersOnly(1));
  master.core().OnFinish(Worker(0));
  master.Commit();
  master.CrashAndReload();

  EndEarly(master);

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_NE(master.core().View().success_rule.find("worker 0 called finish()"), std::string::npos)
      << master.core().View().success_rule;
  EXPECT_EQ(master.Data().records_not_trained, 30);
}

TEST_F(SuccessRuleTest, AcceptsTheStepOfTheFlagAsTheEnd) {
  job::JobSpec spec = WorkersOnly(1);
  spec.max_step = 100;
  CoreFixture reached(spec);
  reached.core().OnMetrics(100, {});
  EndEarly(reached);
  EXPECT_EQ(reached.state(), JobState::kSucceeded);
  EXPECT_EQ(reached.core().View().success_rule,
            "the program declared its end: --max_step=100 was reached");

  CoreFixture short_of_it(spec);
  short_of_it.core().OnMetrics(99, {});
  EndEarly(short_of_it);
  EXPECT_EQ(short_of_it.state(), JobState::kFailed);
}

TEST_F(SuccessRuleTest, AcceptsTheEndThatAnEstimatorLogged) {
  CoreFixture master(TensorFlowJob(0, 0, 0));
  master.StartReplicas();
  master.Register(Shards(5));
  OurClient chief(master, Chief());
  chief.Report(chief.Lease());
  master.Log(Chief(), "INFO:tensorflow:Loss for final step: nan.\n");

  master.Exit(NameOf(Chief()), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded) << master.core().View().reason;
}

TEST_F(SuccessRuleTest, AcceptsTheExitOfAPublishedChiefAsTheEnd) {
  CoreFixture master(TensorFlowJob(0, 0, 0));
  master.StartReplicas();
  master.Register(Shards(5));
  master.ReportTask(master.FetchShard(Chief()));

  master.Exit(NameOf(Chief()), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded) << master.core().View().reason;
}

TEST_F(SuccessRuleTest, FailsAJobThatReportedNothing) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(2));
  std::string running = NameOf(Worker(0));
  for (int64_t id = 0; master.state() == JobState::kRunning; ++id) {
    ASSERT_LT(id, 5);
    OurClient silent(master, Worker(id));
    silent.LeaseMany(2);
    ASSERT_EQ(silent.Ask()->answer, LeaseAnswer::kFinished);
    master.Exit(NameOf(Worker(id)), Succeeded());
    for (const LaunchCommand& launch : master.TakeLaunches()) master.Running(launch.name);
  }

  EXPECT_EQ(master.state(), JobState::kFailed);
  EXPECT_NE(master.core().View().reason.find("20 of 20 records were never reported"),
            std::string::npos)
      << master.core().View().reason;
  EXPECT_NE(master.core().View().reason.find("report_batch_done()"), std::string::npos);
}

TEST_F(SuccessRuleTest, NeedsNoDataset) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.state(), JobState::kSucceeded);
  EXPECT_NE(master.core().View().success_rule.find("no dataset"), std::string::npos);
}

TEST_F(SuccessRuleTest, SaysThatAllWasReported) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.core().View().success_rule, "all 10 records were reported");
}

TEST(BadShardLimit, FailsTheJobAsSoonAsItIsPassed) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  for (int times = 0; times < Dataset::kMaxFailures; ++times) {
    worker.Report(worker.Lease(), ShardOutcome::kFailed, "bad record 7");
  }

  master.Tick();

  EXPECT_EQ(master.state(), JobState::kFinishing);
  EXPECT_NE(master.core().View().reason.find("records 0 to 9"), std::string::npos)
      << master.core().View().reason;
  EXPECT_NE(master.core().View().reason.find("bad record 7"), std::string::npos);
}

TEST(PsAndData, GetsNoShards) {
  job::JobSpec spec = WorkersOnly(1);
  spec.num_ps = 1;
  CoreFixture master(spec);
  master.StartReplicas();
  master.Register(Shards(2));
  const ReplicaRef ps{job::Role::kPs, 0};

  OurClient ours(master, ps);
  EXPECT_EQ(ours.Ask()->answer, LeaseAnswer::kFinished);
  EXPECT_FALSE(master.Fetch(ps).answer->has_value()) << "nor at the other API";

  EXPECT_EQ(master.Data().leases, 0);
  OurClient worker(master, Worker(0));
  for (const LeasedShard& shard : worker.LeaseMany(2)) worker.Report(shard);
  master.Exit(NameOf(Worker(0)), Succeeded());
  ASSERT_FALSE(master.core().View().remarks.empty());
  EXPECT_NE(master.core().View().remarks.front().find("a ps ran the workers' program"),
            std::string::npos);
}

// A final ledger.

class Resumed : public ::testing::Test {
 protected:
  // A job that failed with one of three shards done.
  Resumed() : master_(Spec()) {
    master_.StartReplicas();
    master_.Register(Shards(3));
    OurClient worker(master_, Worker(0));
    worker.Report(worker.Lease());
    master_.Exit(NameOf(Worker(0)), Failed());
    master_.TakeLaunches();
  }

  static job::JobSpec Spec() {
    job::JobSpec spec = WorkersOnly(1);
    spec.relaunch_on_worker_failure = 0;
    return spec;
  }

  CoreFixture master_;
};

TEST_F(Resumed, StaysFinalWithoutBeingAsked) {
  ASSERT_EQ(master_.state(), JobState::kFailed);
  const std::string reason = master_.core().View().reason;

  master_.CrashAndReload(/*synced=*/false);

  EXPECT_EQ(master_.state(), JobState::kFailed);
  EXPECT_EQ(master_.core().View().reason, reason);
  EXPECT_EQ(master_.core().View().master_starts, 1);
  EXPECT_TRUE(master_.TakeLaunches().empty());
}

TEST_F(Resumed, TakesEachResumeUpOnce) {
  master_.spec().resume_number = 1;
  master_.CrashAndReload();
  EXPECT_EQ(master_.state(), JobState::kRunning);
  ASSERT_EQ(master_.TakeLaunches().size(), 1u);
  master_.Exit(NameOf(Worker(1)), Failed());
  ASSERT_EQ(master_.state(), JobState::kFailed);

  master_.CrashAndReload(/*synced=*/false);
  EXPECT_EQ(master_.state(), JobState::kFailed) << "that resume was taken up before";

  master_.spec().resume_number = 2;
  master_.CrashAndReload();
  EXPECT_EQ(master_.state(), JobState::kRunning);
}

TEST_F(Resumed, HasTheNumberOfWorkersOfTheNewCommand) {
  master_.spec().resume_number = 1;
  master_.spec().resume_workers = 3;
  master_.spec().num_workers = 3;
  master_.CrashAndReload();
  EXPECT_EQ(master_.TakeLaunches().size(), 3u);
  master_.core().Stop("enough");
  master_.Commit();
  for (int64_t id = 1; id <= 3; ++id) master_.Exit(NameOf(Worker(id)), Killed());
  ASSERT_EQ(master_.state(), JobState::kStopped);

  master_.spec().resume_number = 2;
  master_.spec().resume_workers = 1;
  master_.spec().num_workers = 1;
  master_.CrashAndReload();

  EXPECT_EQ(master_.TakeLaunches().size(), 1u);
}

TEST_F(Resumed, LetsWorkersThatHadSucceededTrainWhatIsLeft) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient bad(master, Worker(0));
  master.Exit(NameOf(Worker(1)), Succeeded());
  for (int times = 0; times < Dataset::kMaxFailures; ++times) {
    bad.Report(bad.Lease(), ShardOutcome::kFailed, "bad record");
  }
  master.Tick();
  master.Exit(NameOf(Worker(0)), Killed());
  ASSERT_EQ(master.state(), JobState::kFailed);
  master.TakeLaunches();

  master.spec().resume_number = 1;
  master.CrashAndReload();

  EXPECT_EQ(master.TakeLaunches().size(), 2u);
  EXPECT_EQ(master.Data().shards_quarantined, 0);
  EXPECT_EQ(master.state(), JobState::kRunning);
}

// The view of the job.

TEST(NoNumber, AsAMetricDoesNotHarmTheLedger) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.core().OnMetrics(1, {{"loss", std::numeric_limits<double>::quiet_NaN()},
                              {"norm", std::numeric_limits<double>::infinity()}});
  master.core().Stop("enough");
  master.Commit();

  master.CrashAndReload();
  master.Exit(NameOf(Worker(0)), Killed());

  EXPECT_EQ(master.state(), JobState::kStopped);
}

TEST(ShownView, IsNotNeededToLoadALedger) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.ledger().PutMeta("job", "{damaged");
  master.Commit();

  master.CrashAndReload();

  EXPECT_EQ(master.state(), JobState::kRunning);
}

TEST(ShownView, OfALedgerHasItsNumbersAndItsEnd) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  master.core().Stop("enough");
  master.Commit();
  master.Exit(NameOf(Worker(0)), Killed());

  const auto view = LedgerView(master.ledger());

  ASSERT_OK(view);
  EXPECT_EQ(view->state, JobState::kStopped);
  EXPECT_EQ(view->version, 2);
  EXPECT_EQ(view->datasets.front().records_done, 10);
}

// Calls that must not be executed twice.

TEST(RepeatedCalls, ResetADatasetOnce) {
  CoreFixture master;
  master.Register(Shards(2));
  const auto first = master.core().Reset(kData, 77);
  master.Commit();
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());

  master.CrashAndReload();
  const auto again = master.core().Reset(kData, 77);

  EXPECT_EQ(*again, *first);
  EXPECT_EQ(master.Data().records_done, 10);
  EXPECT_NE(*master.core().Reset(kData, 78), *first);
  EXPECT_EQ(master.Data().records_done, 0);
}

TEST(RepeatedCalls, RestoreADatasetOnce) {
  CoreFixture master;
  master.Register(Shards(2));
  const std::string saved = *master.core().dispatcher().Save(kData);
  ASSERT_OK(master.core().Restore(saved, 77));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());

  ASSERT_OK(master.core().Restore(saved, 77));

  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(RepeatedCalls, DeleteASynchronizationOnce) {
  CoreFixture master;
  master.core().DeleteSync("event", 77);
  master.core().master_api().Notify("event");

  master.core().DeleteSync("event", 77);

  bool ready = false;
  master.core().master_api().AwaitEvent("event", std::chrono::milliseconds(0),
                                        [&](const Result<bool>& is) { ready = is.ok() && *is; });
  ASSERT_EQ(master.core().Commit(), Ok());
  EXPECT_TRUE(ready);
}

TEST(RepeatedCalls, AreForgottenOnceThereAreVeryMany) {
  Ledger ledger = *Ledger::Open(":memory:");
  RecentCalls calls(ledger);
  for (uint64_t id = 1; id <= RecentCalls::kMost + 1; ++id) calls.Remember(id, 5);

  EXPECT_FALSE(calls.Find(1));
  EXPECT_EQ(calls.Find(2), 5U);
  EXPECT_FALSE(calls.Find(0));
}

TEST(Rejoin, OfAnotherReplicaIsRefused) {
  CoreFixture master;
  OurClient worker(master, Worker(0));

  const auto joined = master.TryJoin({.replica = Worker(1), .incarnation = worker.incarnation()});

  EXPECT_THAT(joined, StatusIs(Code::kAborted));
}

}  // namespace
}  // namespace edl::master
