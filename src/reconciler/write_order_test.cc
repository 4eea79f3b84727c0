#include "reconciler/write_order.h"

#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using Kind = Action::Kind;

constexpr WallTime kThen{std::chrono::seconds(1'700'000'000)};

// A plan of a job that becomes Running.
Plan PlanOf(std::initializer_list<Kind> kinds) {
  Plan plan;
  for (const Kind kind : kinds) plan.actions.push_back({.kind = kind, .object = {}});
  plan.status.conditions.Set(kRunning, true, "TFJobRunning", "", kThen);
  plan.status.start_time = kThen;
  plan.status.replicas[ReplicaType::kWorker] = {.active = 1};
  return plan;
}

// The order if the status changes from an empty one as `change` says.
template <typename Change>
WriteOrder AfterChange(Change change) {
  Plan plan = PlanOf({Kind::kCreatePod});
  change(plan.status);
  return OrderOfWrites(plan, JobStatus());
}

TEST(WriteOrder, CreationsThatFollowFromTheSpecAloneComeBeforeTheStatus) {
  EXPECT_EQ(OrderOfWrites(PlanOf({Kind::kCreatePod, Kind::kCreateService}), JobStatus()),
            WriteOrder::kActionsFirst);
  EXPECT_EQ(OrderOfWrites(PlanOf({}), JobStatus()), WriteOrder::kActionsFirst);
}

TEST(WriteOrder, AnyOtherActionWaitsForTheStatus) {
  for (const Kind kind :
       {Kind::kDeletePod, Kind::kDeleteService, Kind::kAdoptPod, Kind::kAdoptService,
        Kind::kReleasePod, Kind::kReleaseService, Kind::kCreatePodGroup, Kind::kUpdatePodGroup,
        Kind::kDeletePodGroup, Kind::kCreateSecret, Kind::kDeleteJob}) {
    EXPECT_EQ(OrderOfWrites(PlanOf({Kind::kCreatePod, kind}), JobStatus()),
              WriteOrder::kStatusFirst)
        << static_cast<int>(kind);
  }
}

TEST(WriteOrder, CreationsWaitForADecisionThatMustNotBeMadeTwice) {
  EXPECT_EQ(AfterChange([](JobStatus& next) { next.retries = 1; }), WriteOrder::kStatusFirst);
  EXPECT_EQ(AfterChange([](JobStatus& next) { next.replacing = {"uid"}; }),
            WriteOrder::kStatusFirst);
  EXPECT_EQ(AfterChange([](JobStatus& next) { next.completed[ReplicaType::kWorker] = {0}; }),
            WriteOrder::kStatusFirst);
}

TEST(WriteOrder, CreationsWaitForAConditionThatChangesWhatIsWanted) {
  for (const std::string_view type : {kRestarting, kSucceeded, kFailed, kSuspended}) {
    EXPECT_EQ(AfterChange([&](JobStatus& next) { next.conditions.Set(type, true, "", "", kThen); }),
              WriteOrder::kStatusFirst)
        << type;
  }
}

TEST(WriteOrder, WhatIsStoredAlreadyDelaysNothing) {
  JobStatus stored;
  stored.conditions.Set(kRestarting, true, "", "", kThen);
  stored.retries = 3;
  stored.replacing = {"uid"};
  stored.completed[ReplicaType::kWorker] = {0};
  Plan plan = PlanOf({Kind::kCreatePod});
  plan.status = stored;
  plan.status.replicas[ReplicaType::kWorker] = {.active = 1, .succeeded = 1};

  EXPECT_EQ(OrderOfWrites(plan, stored), WriteOrder::kActionsFirst);
}

}  // namespace
}  // namespace edl::reconciler
