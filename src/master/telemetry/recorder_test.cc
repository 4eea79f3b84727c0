#include "master/telemetry/recorder.h"

#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using telemetry::Curve;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Curve::Point> CurveOf(const telemetry::Store& store, const std::string& name) {
  const telemetry::Curves curves = store.Read({.series = {name}, .max_points = 1000});
  return curves.series.empty() ? std::vector<Curve::Point>() : curves.series[0].points;
}

std::vector<Curve::Point> CurveOf(const CoreFixture& master, const std::string& name) {
  const telemetry::Curves curves = master.core().Telemetry({.series = {name}, .max_points = 1000});
  return curves.series.empty() ? std::vector<Curve::Point>() : curves.series[0].points;
}

float LastOf(const CoreFixture& master, const std::string& name) {
  const auto curve = CurveOf(master, name);
  if (curve.empty()) ADD_FAILURE() << name << " has no points";
  return curve.empty() ? -1 : curve.back().values.last;
}

TEST(Recorder, SamplesDistinctRecordsPerSecond) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(20));
  OurClient worker(master, Worker(0));
  for (int i = 0; i < 5; ++i) {
    master.LetPass(seconds(1));
    worker.Report(worker.Lease());
    worker.Report(worker.Lease());
  }
  master.LetPass(seconds(1));

  const auto rate = CurveOf(master, "records_per_s");
  ASSERT_EQ(rate.size(), 6);
  EXPECT_EQ(rate.front().values.last, 0);
  EXPECT_EQ(rate.back().values.last, 20) << "two shards of ten records in each second";
  EXPECT_EQ(rate.back().time - rate.front().time, 5);
  EXPECT_EQ(LastOf(master, "batches"), 20);
  EXPECT_EQ(LastOf(master, "shards.done"), 10);
}

TEST(Recorder, HasAGapWhereADatasetWasReset) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(20));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  master.LetPass(seconds(2));
  const size_t before = CurveOf(master, "records_per_s").size();
  ASSERT_OK(master.core().Reset(kData));

  master.LetPass(seconds(1));
  EXPECT_EQ(CurveOf(master, "records_per_s").size(), before);
  master.LetPass(seconds(1));
  EXPECT_EQ(CurveOf(master, "records_per_s").size(), before + 1);
}

TEST(Recorder, CountsShardsByState) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(10, 2));
  OurClient worker(master, Worker(0));
  const std::vector<LeasedShard> shards = worker.LeaseMany(5);
  worker.Report(shards[0]);
  worker.Report(shards[1], ShardOutcome::kFailed, "broken");
  OurClient other(master, Worker(1));

  master.LetPass(seconds(1));

  EXPECT_EQ(LastOf(master, "shards.done"), 1);
  EXPECT_EQ(LastOf(master, "shards.leased"), 3);
  EXPECT_EQ(LastOf(master, "shards.returned"), 1);
  EXPECT_EQ(LastOf(master, "shards.waiting"), 15);
  EXPECT_EQ(LastOf(master, "shards.quarantined"), 0);
  EXPECT_EQ(LastOf(master, "calls.waiting"), 0);
}

TEST(Recorder, CountsReplicasByRoleAndState) {
  CoreFixture master(TensorFlowJob(3, 1, 0));
  master.StartReplicas();
  master.LetPass(seconds(1));
  EXPECT_EQ(LastOf(master, "replicas.worker.running"), 3);
  EXPECT_EQ(LastOf(master, "replicas.ps.running"), 1);
  EXPECT_TRUE(CurveOf(master, "replicas.worker.succeeded").empty());

  master.Exit(NameOf(Worker(1)), Succeeded());
  master.LetPass(seconds(1));

  EXPECT_EQ(LastOf(master, "replicas.worker.running"), 2);
  EXPECT_EQ(LastOf(master, "replicas.worker.succeeded"), 1);
}

TEST(Recorder, CountsNoReplicasInAStateThatAllHaveLeft) {
  CoreFixture master(WorkersOnly(2));
  master.Synced();
  master.Running(NameOf(Worker(0)));
  master.LetPass(seconds(1));
  EXPECT_EQ(LastOf(master, "replicas.worker.pending"), 1);

  master.Running(NameOf(Worker(1)));
  master.LetPass(seconds(1));

  EXPECT_EQ(LastOf(master, "replicas.worker.pending"), 0);
}

TEST(Recorder, SamplesParameterServersAndTheirSums) {
  job::JobSpec spec = WorkersOnly(1);
  spec.own_ps = true;
  spec.num_ps = 18;
  spec.compat_api = false;
  spec.ps_silence_secs = 0;
  CoreFixture master(spec);
  master.StartReplicas();
  master.LetPass(seconds(1));
  for (const ServerCommand& command : master.core().TakeServerCommands()) {
    const auto* probe = std::get_if<ProbeServer>(&command);
    if (probe == nullptr || probe->index == 3) continue;  // server 3 has not answered
    const PsIncarnation life(static_cast<uint64_t>(probe->index) + 100);
    master.core().OnProbed(probe->number, ProbeReply{life, 1});
    master.core().OnServerState({.index = probe->index,
                                 .incarnation = life,
                                 .rows = 10,
                                 .bytes = 100,
                                 .rows_pulled_per_s = 5,
                                 .rows_pushed_per_s = 3});
  }

  master.LetPass(seconds(1));

  EXPECT_EQ(LastOf(master, "ps.0.rows"), 10);
  EXPECT_EQ(LastOf(master, "ps.15.rows_pulled_per_s"), 5);
  EXPECT_TRUE(CurveOf(master, "ps.3.rows").empty());
  EXPECT_TRUE(CurveOf(master, "ps.16.rows").empty());
  EXPECT_EQ(LastOf(master, "ps.rows"), 170);
  EXPECT_EQ(LastOf(master, "ps.bytes"), 1700);
  EXPECT_EQ(LastOf(master, "ps.rows_pulled_per_s"), 85);
  EXPECT_EQ(LastOf(master, "ps.rows_pushed_per_s"), 51);
}

TEST(Recorder, SamplesWhatTheProcessUses) {
  CoreFixture master(WorkersOnly(1));
  double cpu = 7;
  master.core().set_process_use(
      [&] { return ProcessUse{.cpu_seconds = cpu += 0.25, .memory_bytes = 1000}; });

  master.LetPass(seconds(3));

  const auto curve = CurveOf(master, "master.cpu");
  ASSERT_EQ(curve.size(), 3) << "none before there is an interval";
  EXPECT_EQ(CurveOf(master, "master.memory").size(), 4);
  EXPECT_EQ(curve.back().values.last, 0.25F);
  EXPECT_EQ(LastOf(master, "master.memory"), 1000);
}

TEST(Recorder, KeepsMetricsThatProgramsReportWithTheirStep) {
  CoreFixture master(WorkersOnly(1));
  master.LetPass(seconds(1));
  master.core().OnMetrics(10, {{"loss", 0.5}, {"time.step", 0.75}});
  master.core().OnMetrics(11, {{"loss", kNan}});
  master.LetPass(seconds(1));
  master.core().OnMetrics(12, {{"loss", kNan}});

  const auto loss = CurveOf(master, "program.loss");
  ASSERT_EQ(loss.size(), 2);
  EXPECT_EQ(loss[0].values.last, 0.5F);
  EXPECT_EQ(loss[0].values.step, 11);
  EXPECT_TRUE(loss[0].values.not_finite);
  EXPECT_EQ(loss[1].values.count, 0);
  EXPECT_EQ(loss[1].values.step, 12);
  EXPECT_EQ(LastOf(master, "program.time.step"), 0.75F);
}

TEST(Recorder, ContinuesOnTheSameLedgerAfterACrash) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  for (int i = 0; i < 100; ++i) {
    master.LetPass(seconds(1));
    master.core().OnMetrics(i, {{"loss", 100 - i}});
  }
  const auto before = CurveOf(master, "program.loss");
  ASSERT_EQ(before.size(), 100);

  master.CrashAndReload();
  for (int i = 100; i < 200; ++i) {
    master.LetPass(seconds(1));
    master.core().OnMetrics(i, {{"loss", 100 - i}});
  }

  const auto after = CurveOf(master, "program.loss");
  EXPECT_EQ(after.front().values.max, 100);
  EXPECT_EQ(after.back().values.last, -99);
  EXPECT_EQ(after.back().values.step, 199);
  uint64_t count = 0;
  for (const Curve::Point& point : after) count += point.values.count;
  EXPECT_GE(count, 196) << "a crash loses the open second and at most two others";
  EXPECT_LE(count, 200);
}

TEST(Recorder, WritesToTheLedgerAtMostEveryTwoSeconds) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.LetPass(seconds(20));
  size_t frames = master.ledger().Telemetry()->frames.size();
  int writes = 0;
  for (int i = 0; i < 40; ++i) {
    master.LetPass(milliseconds(500));
    const size_t now = master.ledger().Telemetry()->frames.size();
    writes += now == frames ? 0 : 1;
    frames = now;
  }

  EXPECT_GE(writes, 9);
  EXPECT_LE(writes, 10);
}

TEST(Recorder, KeepsTheLastSecondOfAJob) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  master.LetPass(seconds(10));
  worker.Report(shard);
  master.core().OnMetrics(7, {{"loss", 3}});
  master.Exit(NameOf(Worker(0)), Succeeded());
  ASSERT_TRUE(job::IsFinal(master.state()));

  telemetry::Store store;
  ASSERT_OK(store.Load(*master.ledger().Telemetry()));

  const auto loss = CurveOf(store, "program.loss");
  ASSERT_EQ(loss.size(), 1);
  EXPECT_EQ(loss[0].values.last, 3);
  EXPECT_EQ(CurveOf(store, "batches").back().values.last, 2);
  EXPECT_EQ(CurveOf(store, "replicas.worker.succeeded").back().values.last, 1);
  EXPECT_EQ(CurveOf(store, "records_per_s").back().values.max, 0) << "not in an instant";
}

TEST(Recorder, BeginsAgainIfTheCurvesInTheLedgerAreDamaged) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.core().OnMetrics(1, {{"loss", 1}});
  master.LetPass(seconds(10));
  master.ledger().PutTelemetry({.frames = {{.level = 0, .slot = 3, .start = 0, .points = "?"}}});
  ASSERT_OK(master.ledger().Commit());

  master.CrashAndReload();
  EXPECT_TRUE(CurveOf(master, "program.loss").empty());
  EXPECT_EQ(master.state(), job::JobState::kRunning);
  master.core().OnMetrics(2, {{"loss", 2}});
  master.LetPass(seconds(10));
  master.CrashAndReload();

  ASSERT_EQ(CurveOf(master, "program.loss").size(), 1);
  EXPECT_EQ(LastOf(master, "program.loss"), 2);
}

TEST(Recorder, ReadsTheLogOfTensorFlowOnce) {
  CoreFixture master(TensorFlowJob(1, 0, 1));
  master.StartReplicas();
  const std::string first =
      "INFO:tensorflow:loss = 2.5, step = 100\n"
      "INFO:tensorflow:global_step/sec: 50\n"
      "INFO:tensorflow:loss = 1.5, step = 200\n";
  const std::string evaluation =
      "INFO:tensorflow:Saving dict for global step 200: accuracy = 0.5, global_step = 200, "
      "loss = 1\n";
  master.LetPass(seconds(1));
  master.Log(Chief(), first);
  master.Log({job::Role::kEvaluator, 0}, evaluation);
  master.LetPass(seconds(4));
  EXPECT_EQ(CurveOf(master, "log.loss").back().values.step, 200);
  EXPECT_EQ(CurveOf(master, "log.loss").back().values.max, 2.5F);
  EXPECT_EQ(LastOf(master, "log.step"), 200);
  EXPECT_EQ(LastOf(master, "log.steps_per_s"), 50);
  EXPECT_EQ(LastOf(master, "evaluation.accuracy"), 0.5F);
  EXPECT_EQ(CurveOf(master, "evaluation.loss").back().values.step, 200);
  EXPECT_TRUE(CurveOf(master, "evaluation.global_step").empty());

  // The next master reads the logs again.
  master.CrashAndReload();
  master.Log(Chief(), first);
  master.Log({job::Role::kEvaluator, 0}, evaluation);
  master.LetPass(seconds(1));
  EXPECT_EQ(CurveOf(master, "log.loss").size(), 1);
  EXPECT_EQ(CurveOf(master, "log.steps_per_s").size(), 1);
  EXPECT_EQ(CurveOf(master, "evaluation.accuracy").size(), 1);
  master.Log(Chief(), "INFO:tensorflow:loss = 1.25, step = 300\n");
  EXPECT_EQ(LastOf(master, "log.loss"), 1.25F);
}

TEST(Recorder, KeepsEvaluationsWithTheVersionAsTheirStep) {
  CoreFixture master(WorkersOnly(1));
  Recorder recorder(master.ledger(), master.core().dispatcher(), master.core().keeper(),
                    master.core().parameters());
  recorder.Load(Time(seconds(5)), WallTime(seconds(100)));

  recorder.OnEvaluation({.version = 40, .metrics = {{"accuracy", 0.75}}});

  const auto curve = CurveOf(recorder.store(), "evaluation.accuracy");
  ASSERT_EQ(curve.size(), 1);
  EXPECT_EQ(curve[0].values.step, 40);
  EXPECT_EQ(curve[0].time, 100);
}

}  // namespace
}  // namespace edl::master
