#include "cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobSnapshot Ended(job::JobState state) {
  JobSnapshot snapshot;
  snapshot.view.name = "iris";
  snapshot.view.state = state;
  snapshot.view.started_at = 1000;
  snapshot.view.ended_at = 1032;
  snapshot.view.relaunches = 2;
  snapshot.view.master_starts = 3;
  snapshot.view.datasets.push_back({.name = "iris.data",
                                    .task_type = "training",
                                    .size = 150,
                                    .epochs = 3,
                                    .records_done = 445,
                                    .records_total = 450,
                                    .shards_repeated = 1,
                                    .records_not_trained = 5});
  return snapshot;
}

TEST(Summary, ShowsTheNumbersOfASucceededJob) {
  JobSnapshot snapshot = Ended(job::JobState::kSucceeded);
  snapshot.view.evaluation = "accuracy = 0.96 (global step 470)";
  snapshot.view.remarks = {"the evaluator did not judge checkpoint 480"};

  EXPECT_EQ(Summary(snapshot, UseColor::kNo),
            "Job iris succeeded after 32 s\n"
            "  records trained  445 of 450 (3 epochs of 150), dataset iris.data\n"
            "  relaunches       2 of replicas, 2 of the master\n"
            "  shards           1 repeated, 0 quarantined\n"
            "  not trained      5 records\n"
            "  last evaluation  accuracy = 0.96 (global step 470)\n"
            "  remark           the evaluator did not judge checkpoint 480\n");
}

TEST(Summary, ShowsWhereTheTimeOfAWorkerGoes) {
  JobSnapshot snapshot = Ended(job::JobState::kSucceeded);
  snapshot.view.metrics = {{"loss", 0.1},        {"time.input", 0.072}, {"time.other", 0.12},
                           {"time.step", 0.808}, {"time.x", -1},        {"timer", 0.5}};
  EXPECT_THAT(Summary(snapshot, UseColor::kNo),
              HasSubstr("  time of a worker  step 81 %, other 12 %, input 7 %\n"));
  snapshot.view.metrics.clear();
  EXPECT_THAT(Summary(snapshot, UseColor::kNo), Not(HasSubstr("time of a worker")));
}

TEST(Summary, ShowsTheReplicaThatFailedTheJobAndItsLastLines) {
  JobSnapshot snapshot = Ended(job::JobState::kFailed);
  snapshot.view.reason = "worker-2 failed: exit code 3";
  snapshot.view.last_lines = {"Traceback", "\x1b[2JValueError"};

  const std::string text = Summary(snapshot, UseColor::kYes);

  EXPECT_THAT(text, HasSubstr("Job iris \x1b[31mfailed\x1b[0m after 32 s: worker-2 failed: exit "
                              "code 3\n  last lines of its log:\n    | Traceback\n"
                              "    | [2JValueError\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl train --resume --job_name=iris"));
}

TEST(Summary, ShowsHowToResumeAnInterruptedJob) {
  JobSnapshot snapshot = Ended(job::JobState::kRunning);
  snapshot.liveness = Liveness::kInterrupted;

  const std::string text = Summary(snapshot, UseColor::kNo);

  EXPECT_THAT(text, HasSubstr("Job iris interrupted"));
  EXPECT_THAT(text, HasSubstr("elasticdl train --resume --job_name=iris"));
}

TEST(StatusText, ShowsReplicasOfARunningJob) {
  JobSnapshot snapshot = Ended(job::JobState::kRunning);
  snapshot.liveness = Liveness::kRunning;
  snapshot.view.ended_at = 0;
  snapshot.view.master_process_id = 55;
  snapshot.view.replicas.push_back({.name = "iris-edljob-worker-4",
                                    .role = "worker",
                                    .index = 1,
                                    .id = 4,
                                    .state = job::ReplicaState::kRunning,
                                    .process_id = 77,
                                    .leases = 2});

  const std::string text = StatusText(snapshot, 1089, UseColor::kNo);

  EXPECT_THAT(text, HasSubstr("Job iris running for 1 min 29 s\n"));
  EXPECT_THAT(text, HasSubstr("445/450 records (98 %) | 5/s"));
  EXPECT_THAT(text, HasSubstr("REPLICA   INDEX  STATE    PROCESS  SHARDS  REASON\n"
                              "master    -      running  55       -\n"
                              "worker-4  1      running  77       2\n"));
}

TEST(StatusText, ShowsNoRunningReplicasOfAnInterruptedJob) {
  JobSnapshot snapshot = Ended(job::JobState::kRunning);
  snapshot.liveness = Liveness::kInterrupted;
  snapshot.view.master_process_id = 55;
  snapshot.view.replicas.push_back({.name = "iris-edljob-worker-4",
                                    .role = "worker",
                                    .index = 1,
                                    .id = 4,
                                    .state = job::ReplicaState::kRunning});

  const std::string text = StatusText(snapshot, 1089, UseColor::kNo);

  EXPECT_THAT(text, HasSubstr("worker-4  1      interrupted"));
  EXPECT_THAT(text, Not(HasSubstr("running")));
}

}  // namespace
}  // namespace edl::cli
