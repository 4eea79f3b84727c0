#include "job/job_view.h"

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

}  // namespace
}  // namespace edl::job
