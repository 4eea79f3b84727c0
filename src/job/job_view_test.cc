#include "job/job_view.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::job {
namespace {

TEST(JobView, RoundTripsThroughJson) {
  JobView view;
  view.name = "iris";
  view.state = JobState::kFailed;
  view.reason = "worker 0 failed";
  view.metrics = {{"loss", 0.25}};
  view.datasets.push_back({.name = "train", .size = 150, .epochs = 3, .records_done = 90});
  view.replicas.push_back(
      {.name = "iris-edljob-worker-4", .role = "worker", .id = 4, .state = ReplicaState::kKilled});

  const Result<JobView> read = JobView::FromJson(view.ToJson());

  ASSERT_OK(read);
  EXPECT_EQ(read->ToJson(), view.ToJson());
}

TEST(JobView, RejectsAnUnknownState) {
  std::string text = JobView{.name = "iris"}.ToJson();
  text.replace(text.find("starting"), 8, "sleeping");

  const Result<JobView> read = JobView::FromJson(text);

  EXPECT_NE(read.status().message().find("sleeping"), std::string::npos);
}

TEST(JobView, KeepsNanAndInfiniteMetrics) {
  JobView view{.name = "iris"};
  view.metrics = {{"down", -std::numeric_limits<double>::infinity()},
                  {"loss", std::numeric_limits<double>::quiet_NaN()},
                  {"norm", std::numeric_limits<double>::infinity()}};

  const Result<JobView> read = JobView::FromJson(view.ToJson());

  ASSERT_OK(read);
  EXPECT_TRUE(std::isnan(read->metrics.at("loss")));
  EXPECT_EQ(read->metrics.at("norm"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read->metrics.at("down"), -std::numeric_limits<double>::infinity());
  EXPECT_NE(view.ToJson().find(R"("loss": "nan")"), std::string::npos);
}

TEST(JobView, ReadsTheNullsOfAnOlderVersion) {
  const Result<JobView> read = JobView::FromJson(R"({"metrics": {"loss": null}, "reason": null})");

  ASSERT_OK(read);
  EXPECT_TRUE(std::isnan(read->metrics.at("loss")));
}

TEST(JobView, AcceptsMissingKeys) {
  const Result<JobView> read =
      JobView::FromJson(R"({"datasets": [{}], "replicas": [{}], "servers": [{}]})");

  ASSERT_OK(read);
  EXPECT_EQ(read->datasets.size(), 1U);
}

TEST(JobView, RejectsANewerVersion) {
  const Result<JobView> read = JobView::FromJson(R"({"view_version": 99, "state": "asleep"})");

  EXPECT_THAT(read, StatusIs(Code::kFailedPrecondition));
  EXPECT_NE(read.status().message().find("newer elasticdl"), std::string::npos);
}

TEST(JobView, RejectsTextThatIsNotAView) {
  for (const char* text : {"", "[]", "{\"name\"", "7", R"({"state": 3})"}) {
    EXPECT_THAT(JobView::FromJson(text), StatusIs(Code::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace edl::job
