#include "reconciler/condition.h"

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

constexpr WallTime kThen{std::chrono::seconds(1000)};
constexpr WallTime kLater{std::chrono::seconds(2000)};

TEST(Conditions, AJobThatHasEndedIsNotRestarting) {
  for (const std::string_view end : {kFailed, kSucceeded}) {
    Conditions conditions;
    conditions.Set(kRestarting, true, "TFJobRestarting", "", kThen);
    conditions.Set(end, true, "x", "", kThen);
    EXPECT_EQ(TextOf(conditions), fmt::format("Restarting- {}", end));
  }
}

TEST(Conditions, T_C1_RunningAndRestartingReplaceEachOtherAndFailedEndsRunning) {
  Conditions conditions;
  EXPECT_TRUE(conditions.Set(kCreated, true, "TFJobCreated", "", kThen));
  EXPECT_TRUE(conditions.Set(kRunning, true, "TFJobRunning", "", kThen));
  EXPECT_EQ(TextOf(conditions), "Created Running");
  EXPECT_TRUE(conditions.Set(kRestarting, true, "TFJobRestarting", "", kThen));
  EXPECT_EQ(TextOf(conditions), "Created Restarting");
  EXPECT_TRUE(conditions.Set(kRunning, true, "TFJobRunning", "", kThen));
  EXPECT_EQ(TextOf(conditions), "Created Running");
  EXPECT_TRUE(conditions.Set(kFailed, true, "TFJobFailed", "", kThen));
  EXPECT_EQ(TextOf(conditions), "Created Running- Failed");
}

TEST(Conditions, T_C1_NothingChangesAfterFailed) {
  Conditions conditions;
  conditions.Set(kFailed, true, "TFJobFailed", "", kThen);
  EXPECT_FALSE(conditions.Set(kSucceeded, true, "TFJobSucceeded", "", kLater));
  EXPECT_FALSE(conditions.Set(kFailed, true, "Other", "", kLater));
  EXPECT_EQ(TextOf(conditions), "Failed");
}

TEST(Conditions, T_C1_TheSameConditionAgainChangesNothing) {
  Conditions conditions;
  conditions.Set(kRunning, true, "TFJobRunning", "first", kThen);
  EXPECT_FALSE(conditions.Set(kRunning, true, "TFJobRunning", "second", kLater));
  EXPECT_EQ(conditions.Find(kRunning)->message, "first");
}

TEST(Conditions, T_C1_ANewReasonKeepsPlaceAndTransitionTime) {
  Conditions conditions;
  conditions.Set(kRunning, true, "TFJobRunning", "", kThen);
  conditions.Set(kSuspended, false, "TFJobResumed", "", kThen);
  EXPECT_TRUE(conditions.Set(kRunning, true, "Other", "", kLater));
  EXPECT_EQ(TextOf(conditions), "Running Suspended-");
  EXPECT_EQ(conditions.Find(kRunning)->changed, kThen);
  EXPECT_EQ(conditions.Find(kRunning)->updated, kLater);
}

TEST(Conditions, T_C1_ANewStatusMovesAConditionToTheEnd) {
  Conditions conditions;
  conditions.Set(kSuspended, true, "TFJobSuspended", "", kThen);
  conditions.Set(kRunning, true, "TFJobRunning", "", kThen);
  conditions.Set(kSuspended, false, "TFJobResumed", "", kLater);
  EXPECT_EQ(TextOf(conditions), "Running Suspended-");
  EXPECT_EQ(conditions.Find(kSuspended)->changed, kLater);
}

TEST(Conditions, T_C2_AJobIsFinishedAfterSucceededAndFailedButNotWhenSuspended) {
  const auto finished_with = [](std::string_view type) {
    Conditions conditions;
    conditions.Set(type, true, "Any", "", kThen);
    return conditions.finished();
  };
  EXPECT_TRUE(finished_with(kSucceeded));
  EXPECT_TRUE(finished_with(kFailed));
  EXPECT_FALSE(finished_with(kSuspended));
}

TEST(Conditions, T_C3_AConditionIsTrueOnlyWithStatusTrue) {
  for (const auto type : {kSucceeded, kFailed, kRunning, kSuspended}) {
    Conditions conditions;
    EXPECT_FALSE(conditions.IsTrue(type)) << type;
    conditions.Append({.type = std::string(type), .is_true = false});
    EXPECT_FALSE(conditions.IsTrue(type)) << type;
    conditions.Set(type, true, "Any", "", kThen);
    EXPECT_TRUE(conditions.IsTrue(type)) << type;
  }
}

TEST(Conditions, Q9_AMissingCreatedIsPutFirst) {
  Conditions conditions;
  conditions.Set(kRunning, true, "TFJobRunning", "", kThen);
  EXPECT_TRUE(conditions.EnsureCreated("TFJobCreated", "", kLater));
  EXPECT_FALSE(conditions.EnsureCreated("TFJobCreated", "", kLater));
  EXPECT_EQ(TextOf(conditions), "Created Running");
}

}  // namespace
}  // namespace edl::reconciler
