#include "job/job_view.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace edl::job {
namespace {

TEST(JobView, SurvivesItsJson) {
  JobView view;
  view.name = "iris";
  view.state = JobState::kFailed;
  view.reason = "worker 0 failed";
  view.metrics = {{"loss", 0.25}};
  view.datasets.push_back({.name = "train", .size = 150, .epochs = 3, .records_done = 90});
  view.replicas.push_back(
      {.name = "iris-edljob-worker-4", .role = "worker", .id = 4, .state = ReplicaState::kKilled});

  const Result<JobView> read = JobView::FromJson(view.ToJson());

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToJson(), view.ToJson());
}

TEST(JobView, SaysWhatIsWrongWithAState) {
  std::string text = JobView{.name = "iris"}.ToJson();
  text.replace(text.find("starting"), 8, "sleeping");

  const Result<JobView> read = JobView::FromJson(text);

  EXPECT_NE(read.status().message().find("sleeping"), std::string::npos);
}

TEST(JobView, KeepsMetricsThatAreNoNumbers) {
  JobView view{.name = "iris"};
  view.metrics = {{"down", -std::numeric_limits<double>::infinity()},
                  {"loss", std::numeric_limits<double>::quiet_NaN()},
                  {"norm", std::numeric_limits<double>::infinity()}};

  const Result<JobView> read = JobView::FromJson(view.ToJson());

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(std::isnan(read->metrics.at("loss")));
  EXPECT_EQ(read->metrics.at("norm"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read->metrics.at("down"), -std::numeric_limits<double>::infinity());
  EXPECT_NE(view.ToJson().find(R"("loss": "nan")"), std::string::npos);
}

TEST(JobView, ReadsTheNullsOfAnOlderVersion) {
  const Result<JobView> read = JobView::FromJson(R"({"metrics": {"loss": null}, "reason": null})");

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(std::isnan(read->metrics.at("loss")));
}

TEST(JobView, NeedsNoKey) {
  const Result<JobView> read =
      JobView::FromJson(R"({"datasets": [{}], "replicas": [{}], "servers": [{}]})");

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->datasets.size(), 1U);
}

TEST(JobView, RefusesANewerVersion) {
  const Result<JobView> read = JobView::FromJson(R"({"view_version": 99, "state": "asleep"})");

  EXPECT_EQ(read.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(read.status().message().find("newer elasticdl"), std::string::npos);
}

TEST(JobView, RefusesWhatIsNoView) {
  for (const char* text : {"", "[]", "{\"name\"", "7", R"({"state": 3})"}) {
    EXPECT_EQ(JobView::FromJson(text).status().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace edl::job
