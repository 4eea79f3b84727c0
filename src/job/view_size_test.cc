#include "job/view_size.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::job {
namespace {

constexpr size_t kLimit = 256 << 10;

JobView With(int replicas, ReplicaState state) {
  JobView view{.name = "iris", .state = JobState::kSucceeded, .reason = "done"};
  view.replicas.push_back(
      {.name = "iris-edljob-ps-0", .role = "ps", .state = ReplicaState::kRunning});
  for (int id = 0; id < replicas; ++id) {
    view.replicas.push_back({.name = "iris-edljob-worker-" + std::to_string(id),
                             .role = "worker",
                             .id = id,
                             .state = state,
                             .reason = "its pod was deleted"});
  }
  return view;
}

TEST(FitJson, KeepsAViewThatFits) {
  const JobView view = With(20, ReplicaState::kRunning);
  EXPECT_EQ(JobView::FromJson(FitJson(view, kLimit))->ToJson(), view.ToJson());
}

TEST(FitJson, FitsAnyNumberOfReplicasAndKeepsTheState) {
  for (const int replicas : {1'000, 5'000, 20'000}) {
    for (const ReplicaState state : {ReplicaState::kRunning, ReplicaState::kKilled}) {
      const std::string text = FitJson(With(replicas, state), kLimit);
      EXPECT_LE(text.size(), kLimit);
      const auto view = JobView::FromJson(text);
      ASSERT_OK(view);
      EXPECT_EQ(view->state, JobState::kSucceeded);
      EXPECT_EQ(view->replicas.front().role, "ps");
      EXPECT_EQ(static_cast<int64_t>(view->replicas.size()) + view->replicas_left_out,
                replicas + 1);
      EXPECT_GT(view->replicas.size(), 500u);
    }
  }
}

TEST(FitJson, KeepsTheNewestEndedReplicas) {
  const auto view = JobView::FromJson(FitJson(With(10'000, ReplicaState::kKilled), kLimit));
  EXPECT_EQ(view->replicas.at(1).id, 9'999);
}

TEST(FitJson, TruncatesLongTexts) {
  JobView view = With(1, ReplicaState::kRunning);
  view.reason = std::string(1 << 20, 'r');
  view.last_lines.assign(10'000, std::string(1'000, 'l'));
  EXPECT_LE(FitJson(view, kLimit).size(), kLimit);
}

}  // namespace
}  // namespace edl::job
