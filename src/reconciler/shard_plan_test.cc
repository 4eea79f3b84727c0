#include "reconciler/shard_plan.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using Kind = Action::Kind;
using ::testing::HasSubstr;

constexpr WallTime kNow{std::chrono::seconds(1'000'000)};

class ShardPlanTest : public testing::Test {
 protected:
  ShardPlanTest() {
    observed_.job.key = {"ml", "mnist"};
    observed_.job.uid = "uid";
    observed_.job.annotations = {{kDataShards, "true"}};
    observed_.job.all_workers_must_succeed = true;
    observed_.job.replicas[ReplicaType::kWorker] = {
        .replicas = 1, .pod_template = {{"spec", {{"containers", {{{"name", "tensorflow"}}}}}}}};
    observed_.shards = ShardService();
    settings_.shards = {.image = "image", .new_token = [] { return std::string("token"); }};
  }

  ReplicaPod& ServicePod() {
    observed_.shards->pod = ReplicaPod{.name = "mnist-shards",
                                       .uid = "pod",
                                       .job = "mnist",
                                       .owner = "uid",
                                       .outcome = PodOutcome::kActive};
    return *observed_.shards->pod;
  }
  void EndJob(std::chrono::seconds ago) {
    observed_.job.status.conditions.Set(kSucceeded, true, "TFJobSucceeded", "", kNow - ago);
    observed_.job.status.completion_time = kNow - ago;
  }
  Plan Reconciled() const { return Reconcile(observed_, settings_, kNow); }
  static bool Creates(const Plan& plan, Kind kind, const std::string& prefix) {
    return std::ranges::any_of(plan.actions, [&](const Action& action) {
      return action.kind == kind && action.object.name().starts_with(prefix);
    });
  }
  static bool DeletesService(const Plan& plan) {
    return std::ranges::any_of(plan.actions, [&](const Action& action) {
      return action.kind == Kind::kDeletePod && action.name == "mnist-shards";
    });
  }

  Observed observed_;
  Settings settings_;
};

TEST_F(ShardPlanTest, CreatesTheServiceWithTheReplicas) {
  const Plan plan = Reconciled();
  EXPECT_TRUE(Creates(plan, Kind::kCreateSecret, "mnist-shards"));
  EXPECT_TRUE(Creates(plan, Kind::kCreateService, "mnist-shards"));
  EXPECT_TRUE(Creates(plan, Kind::kCreatePod, "mnist-shards"));
  EXPECT_TRUE(Creates(plan, Kind::kCreatePod, "mnist-worker-0"));
}

TEST_F(ShardPlanTest, CreatesThePodOnlyAfterItsSecretAndItsService) {
  std::vector<Kind> first;
  for (const Action& action : Reconciled().actions) {
    if (action.first) first.push_back(action.kind);
    if (action.kind == Kind::kCreatePod) break;
  }
  EXPECT_THAT(first, testing::ElementsAre(Kind::kCreateSecret, Kind::kCreateService));
}

TEST_F(ShardPlanTest, CreatesAServiceThatIsMissing) {
  ServicePod();
  EXPECT_TRUE(Creates(Reconciled(), Kind::kCreateService, "mnist-shards"));
  observed_.shards->has_service = true;
  EXPECT_FALSE(Creates(Reconciled(), Kind::kCreateService, "mnist-shards"));
}

TEST_F(ShardPlanTest, IgnoresTheProgressOfADeletedJobOfTheSameName) {
  ServicePod().owner = "deleted";
  observed_.shards->progress = "100 %";
  EXPECT_EQ(Reconciled().status.progress, "");
}

TEST_F(ShardPlanTest, CreatesNoServiceWithoutTheAnnotation) {
  observed_.job.annotations = {};
  observed_.shards.reset();
  const Plan plan = Reconciled();
  EXPECT_FALSE(Creates(plan, Kind::kCreatePod, "mnist-shards"));
  EXPECT_FALSE(plan.again_at.has_value());
}

TEST_F(ShardPlanTest, CreatesNothingWhileTheServiceIsNotKnown) {
  observed_.shards.reset();
  EXPECT_FALSE(Creates(Reconciled(), Kind::kCreatePod, "mnist-shards"));
}

TEST_F(ShardPlanTest, LeavesARunningServiceAloneAndReadsItsProgressAgain) {
  ServicePod();
  observed_.shards->progress = "40 %";

  const Plan plan = Reconciled();

  EXPECT_FALSE(Creates(plan, Kind::kCreatePod, "mnist-shards"));
  EXPECT_FALSE(DeletesService(plan));
  EXPECT_EQ(plan.status.progress, "40 %");
  EXPECT_EQ(plan.again_at, kNow + ShardPlan::kReadProgressEvery);
}

TEST_F(ShardPlanTest, KeepsTheLastProgressWhileTheServiceIsSilent) {
  ServicePod();
  observed_.job.status.progress = "40 %";
  EXPECT_EQ(Reconciled().status.progress, "40 %");
}

TEST_F(ShardPlanTest, ReplacesAServiceThatItsNodeEvicted) {
  ReplicaPod& pod = ServicePod();
  pod.outcome = PodOutcome::kDisrupted;
  pod.terminal = true;
  EXPECT_TRUE(DeletesService(Reconciled()));
}

TEST_F(ShardPlanTest, FailsTheJobWhenTheServiceGivesUp) {
  ServicePod();
  observed_.shards->failure = "exit code 1: 3 shards failed";

  const Plan plan = Reconciled();

  ASSERT_TRUE(plan.status.conditions.IsTrue(kFailed));
  EXPECT_THAT(plan.status.conditions.Find(kFailed)->message, HasSubstr("3 shards failed"));
}

TEST_F(ShardPlanTest, SaysWhatIsWrongWithTheService) {
  ReplicaPod& pod = ServicePod();
  pod.outcome = PodOutcome::kPending;
  pod.problem_reason = "ErrImagePull";
  pod.reason = "cannot pull";
  const Plan plan = Reconciled();
  EXPECT_TRUE(std::ranges::any_of(plan.events, [](const JobEvent& event) {
    return event.reason == "ErrImagePull" && event.message == "cannot pull";
  }));
}

TEST_F(ShardPlanTest, DoesNotTouchAPodOfTheSameNameThatIsNotTheJobs) {
  ReplicaPod& pod = ServicePod();
  pod.owner = "other";
  pod.job = "";
  pod.terminal = true;

  const Plan plan = Reconciled();

  EXPECT_FALSE(DeletesService(plan));
  EXPECT_TRUE(std::ranges::any_of(
      plan.events, [](const JobEvent& event) { return event.reason == "DataShardsNameTaken"; }));
}

TEST_F(ShardPlanTest, ReportsThePodOfAJobThatWasDeletedWithoutItsPods) {
  ServicePod().owner = "";

  const Plan plan = Reconciled();

  EXPECT_TRUE(std::ranges::any_of(
      plan.events, [](const JobEvent& event) { return event.reason == "DataShardsNameTaken"; }));
  ServicePod().owner = "uid-of-a-deleted-job";
  EXPECT_FALSE(std::ranges::any_of(Reconciled().events, [](const JobEvent& event) {
    return event.reason == "DataShardsNameTaken";
  }));
}

TEST_F(ShardPlanTest, KeepsTheServiceOfASuspendedJob) {
  ServicePod();
  observed_.job.suspended = true;
  EXPECT_FALSE(DeletesService(Reconciled()));
}

TEST_F(ShardPlanTest, ReadsTheLastProgressOfAJobThatHasEnded) {
  ServicePod();
  EndJob(std::chrono::seconds(1));
  observed_.shards->progress = "100 %";

  const Plan plan = Reconciled();

  EXPECT_EQ(plan.status.progress, "100 %");
  EXPECT_FALSE(DeletesService(plan));
  ASSERT_TRUE(plan.again_at.has_value());
}

TEST_F(ShardPlanTest, DeletesTheServiceAfterTheEndOfTheJob) {
  ServicePod();
  EndJob(ShardPlan::kKeptAfterEnd);
  EXPECT_TRUE(DeletesService(Reconciled()));
}

TEST_F(ShardPlanTest, K45_APodOfADeletedJobOnALostNodeDoesNotBlockTheService) {
  ReplicaPod& pod = ServicePod();
  pod.owner = "uid-of-a-deleted-job";
  pod.owner_is_job = true;
  pod.outcome = PodOutcome::kTerminating;
  pod.node_loss = NodeLoss::kCertain;
  pod.deletion_time = kNow - std::chrono::seconds(10);
  EXPECT_TRUE(DeletesService(Reconciled()));
  pod.owner_is_job = false;
  EXPECT_FALSE(DeletesService(Reconciled()));
}

TEST_F(ShardPlanTest, K45_ALostNodeOfTheServiceDoesNotBlockADeletionInTheForeground) {
  observed_.job.deleting = true;
  ReplicaPod& pod = ServicePod();
  pod.node_loss = NodeLoss::kCertain;
  EXPECT_FALSE(DeletesService(ReconcileDeletion(observed_, kNow)));
  EXPECT_EQ(ReconcileDeletion(observed_, kNow).again_at, kNow + ShardPlan::kReadProgressEvery);
  pod.outcome = PodOutcome::kTerminating;
  pod.deletion_time = kNow - std::chrono::seconds(10);
  EXPECT_TRUE(DeletesService(ReconcileDeletion(observed_, kNow)));
}

}  // namespace
}  // namespace edl::reconciler
