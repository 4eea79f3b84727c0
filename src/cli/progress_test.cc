#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;
using job::ReplicaState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job::JobView Iris() {
  job::JobView view;
  view.name = "iris";
  view.state = job::JobState::kRunning;
  view.datasets.push_back({.name = "train",
                           .task_type = "training",
                           .size = 20'000,
                           .epochs = 3,
                           .epoch = 1,
                           .records_done = 30'000,
                           .records_total = 60'000});
  view.replicas = {
      {.name = "iris-edljob-worker-0", .role = "worker", .state = ReplicaState::kKilled},
      {.name = "iris-edljob-worker-1",
       .role = "worker",
       .index = 1,
       .id = 1,
       .state = ReplicaState::kRunning},
      {.name = "iris-edljob-worker-2", .role = "worker", .id = 2, .state = ReplicaState::kPending},
      {.name = "iris-edljob-ps-0", .role = "ps", .state = ReplicaState::kRunning}};
  view.metrics = {{"loss", 0.123456}};
  return view;
}

TEST(ProgressLine, ShowsAllParts) {
  EXPECT_EQ(
      ProgressLine(Iris(), 1500),
      "running | epoch 2/3 | 30,000/60,000 records (50 %) | 1,500/s | 20 s left | loss 0.1235 "
      "| 1 ps, 1 worker running; 1 worker waiting");
}

TEST(ProgressLine, KeepsPercentTimeLeftAndLossInANarrowTerminal) {
  const job::JobView view = Iris();
  const std::string full = ProgressLine(view, 1500);

  const std::string sixty = ProgressLine(view, 1500, 60);
  const std::string forty = ProgressLine(view, 1500, 40);

  EXPECT_LE(sixty.size(), 60);
  EXPECT_LE(forty.size(), 40);
  for (const std::string& line : {full, sixty, forty}) {
    EXPECT_THAT(line, HasSubstr(" %"));
    EXPECT_THAT(line, HasSubstr(" left"));
    EXPECT_THAT(line, HasSubstr("loss 0.1235"));
  }
  EXPECT_EQ(ProgressLine(view, 1500, full.size()), full);
}

TEST(ProgressLine, CountsReplicasThatTheViewLeavesOut) {
  job::JobView view = Iris();
  view.replicas_left_out = 3'068;
  EXPECT_THAT(ProgressLine(view, 1500), HasSubstr("; 3,068 replicas not listed"));
}

TEST(ProgressLine, LeavesOutUnknownParts) {
  EXPECT_EQ(ProgressLine({.name = "iris"}, 0), "starting");
}

TEST(ProgressLine, ShowsNoTotalForAnUnlimitedDataset) {
  job::JobView view = Iris();
  view.datasets[0].epochs = 0;
  view.datasets[0].records_total = 0;
  view.replicas.clear();
  view.metrics.clear();

  EXPECT_EQ(ProgressLine(view, 10), "running | epoch 2 | 30,000 records | 10/s");
}

TEST(RecordsOf, CountsTrainingDataOnly) {
  job::JobView view = Iris();
  view.datasets.push_back({.task_type = "evaluation", .records_done = 7, .records_total = 8});

  EXPECT_EQ(RecordsOf(view).done, 30'000);
  EXPECT_EQ(RecordsOf(view).total, 60'000);
}

TEST(RecordsOf, NeverShowsAnEpochPastTheLast) {
  job::JobView view = Iris();
  view.datasets[0].epoch = 3;

  EXPECT_EQ(RecordsOf(view).epoch, 3);
}

TEST(RateMeter, MeasuresTheLastHalfMinute) {
  FakeClock clock;
  RateMeter meter;
  EXPECT_EQ(meter.PerSecond(), 0);
  meter.Add(clock.Now(), 0);
  clock.Advance(100s);
  meter.Add(clock.Now(), 100);
  EXPECT_DOUBLE_EQ(meter.PerSecond(), 1);

  for (int second = 1; second <= 40; ++second) {
    clock.Advance(1s);
    meter.Add(clock.Now(), 100 + 10 * second);
  }

  EXPECT_DOUBLE_EQ(meter.PerSecond(), 10);
}

TEST(RateMeter, StartsAgainWhenTheNumberOfRecordsFalls) {
  FakeClock clock;
  RateMeter meter;
  meter.Add(clock.Now(), 1000);
  clock.Advance(1s);
  meter.Add(clock.Now(), 0);

  EXPECT_EQ(meter.PerSecond(), 0);
}

TEST(Changes, ListTheDifferencesBetweenTwoViews) {
  job::JobView before = Iris();
  before.state = job::JobState::kStarting;
  before.master_starts = 1;
  before.replicas[0].state = ReplicaState::kRunning;
  before.replicas.erase(before.replicas.begin() + 2);
  job::JobView after = Iris();
  after.master_starts = 2;
  after.replicas[0].reason = "killed by SIGKILL";
  after.replicas[2].state = ReplicaState::kRunning;
  after.replicas[2].process_id = 42;
  after.evaluation = "accuracy = 0.9";

  EXPECT_THAT(Changes(before, after),
              ElementsAre("master restarted (1 times so far)", "job iris running",
                          "worker-0 killed: killed by SIGKILL",
                          "worker-2 runs as worker 0 (process 42)", "evaluation: accuracy = 0.9"));
  EXPECT_THAT(Changes(after, after), IsEmpty());
}

TEST(Changes, DoNotListPendingReplicas) {
  job::JobView before = Iris();
  before.replicas.erase(before.replicas.begin() + 2);

  EXPECT_THAT(Changes(before, Iris()), IsEmpty());
}

}  // namespace
}  // namespace edl::cli
