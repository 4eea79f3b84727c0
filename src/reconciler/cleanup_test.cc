#include "reconciler/cleanup.h"

#include "reconciler/pod_group.h"
#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = Action::Kind;

constexpr ReplicaType kWorker = ReplicaType::kWorker;
constexpr ReplicaType kPs = ReplicaType::kPs;

enum class State { kUnfinished, kSucceeded, kSuspended };

// A job with the given policy, whose worker 0 runs and whose worker 1 has succeeded.
Observed TwoWorkers(const std::string& policy, State state) {
  Observed observed;
  observed.job =
      ParsedJob(JobObject({{"Worker", Role(2)}},
                          {{"cleanPodPolicy", policy}, {"suspend", state == State::kSuspended}}));
  if (state == State::kSucceeded) {
    observed.job.status.conditions.Set(kSucceeded, true, "TFJobSucceeded", "", kNoon);
  }
  observed.pods = {PodOf(kWorker, 0, PodOutcome::kActive),
                   PodOf(kWorker, 1, PodOutcome::kSucceeded)};
  observed.services = {ServiceOf(kWorker, 0), ServiceOf(kWorker, 1)};
  return observed;
}

std::vector<std::string> DeletedBy(const Plan& plan) {
  std::vector<std::string> out;
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::kDeletePod) out.push_back("pod " + action.name);
    if (action.kind == Kind::kDeleteService) out.push_back("service " + action.name);
    if (action.kind == Kind::kDeletePodGroup) out.push_back("group " + action.name);
    if (action.kind == Kind::kDeleteJob) out.push_back("job " + action.name);
  }
  return out;
}

std::vector<std::string> Deleted(const Observed& observed) {
  return DeletedBy(Reconcile(observed, {}, kNoon));
}

const auto kRunningOnly = ElementsAre("pod j-worker-0", "service j-worker-0");
const auto kBoth = UnorderedElementsAre("pod j-worker-0", "pod j-worker-1", "service j-worker-0",
                                        "service j-worker-1");

TEST(Cleanup, T_CL1_ThePolicyOfAFinishedJobSaysWhatIsDeleted) {
  EXPECT_THAT(Deleted(TwoWorkers("Running", State::kSucceeded)), kRunningOnly);
  EXPECT_THAT(Deleted(TwoWorkers("All", State::kSucceeded)), kBoth);
  EXPECT_THAT(Deleted(TwoWorkers("None", State::kSucceeded)), IsEmpty());
}

TEST(Cleanup, T_CL1_ASuspendedJobLosesAllPodsWhateverItsPolicy) {
  for (const char* policy : {"Running", "None", "All"}) {
    EXPECT_THAT(Deleted(TwoWorkers(policy, State::kSuspended)), kBoth) << policy;
  }
}

TEST(Cleanup, T_CL1_T_CL2_DeletingAllOfAnUnfinishedJobIgnoresItsPolicy) {
  const Observed observed = TwoWorkers("None", State::kUnfinished);
  const Claimed own = Claim(observed);
  Plan plan;
  Cleanup(observed, own, kNoon, plan).DeleteAll();
  EXPECT_THAT(DeletedBy(plan), kBoth);
}

// Worker 0 was restarted more often than the job allows.
Observed PastLimit(const std::string& policy) {
  Observed observed = TwoWorkers(policy, State::kUnfinished);
  observed.job.replicas.at(kWorker).restart = RestartPolicy::kOnFailure;
  observed.job.all_workers_must_succeed = true;
  observed.job.backoff_limit = 3;
  observed.pods[0].restarts = 3;
  return observed;
}

TEST(Cleanup, APodIsNotDeletedByForceBeforeItsGracePeriodIsKnown) {
  Observed observed = TwoWorkers("None", State::kSuspended);
  for (ReplicaPod& pod : observed.pods) {
    pod.outcome = PodOutcome::kTerminating;
    pod.node_loss = NodeLoss::kCertain;
    pod.deletion_time = kUnknownEnd;
  }
  for (const Action& action : Reconcile(observed, {}, kNoon).actions) {
    EXPECT_NE(action.kind, Kind::kDeletePod);
  }
}

TEST(Cleanup, T_CL2_AJobThatFailsByItsBackoffLimitKeepsItsPodsIfItsPolicySaysSo) {
  EXPECT_TRUE(Reconcile(PastLimit("None"), {}, kNoon).milestones.failed);
  EXPECT_THAT(Deleted(PastLimit("None")), IsEmpty());
  EXPECT_THAT(Deleted(PastLimit("All")), kBoth);
  EXPECT_THAT(Deleted(PastLimit("Running")), kRunningOnly);
}

TEST(Cleanup, T_I3_ASucceededJobIsCleanedUp) {
  const auto left = [](PodOutcome outcome, const std::string& policy) {
    Observed observed;
    observed.job =
        ParsedJob(JobObject({{"Worker", Role(4)}, {"PS", Role(2)}}, {{"cleanPodPolicy", policy}}));
    observed.job.status.conditions.Set(kSucceeded, true, "TFJobSucceeded", "", kNoon);
    for (int i = 0; i < 6; ++i) {
      const ReplicaType type = i < 4 ? kWorker : kPs;
      observed.pods.push_back(PodOf(type, i % 4, outcome));
      observed.services.push_back(ServiceOf(type, i % 4));
    }
    size_t pods = 6;
    size_t services = 6;
    for (const Action& action : Reconcile(observed, {}, kNoon).actions) {
      if (action.kind == Kind::kDeletePod) --pods;
      if (action.kind == Kind::kDeleteService) --services;
    }
    EXPECT_EQ(pods, services);
    return pods;
  };
  EXPECT_EQ(left(PodOutcome::kActive, "All"), 0u);
  EXPECT_EQ(left(PodOutcome::kActive, "Running"), 0u);
  EXPECT_EQ(left(PodOutcome::kSucceeded, "Running"), 6u);
  EXPECT_EQ(left(PodOutcome::kSucceeded, "None"), 6u);
  EXPECT_EQ(left(PodOutcome::kPending, "Running"), 0u);
}

TEST(Cleanup, APodWithASidecarThatStillRunsIsDeletedAsRunning) {
  Observed observed = TwoWorkers("Running", State::kSucceeded);
  observed.pods[1].terminal = false;
  EXPECT_THAT(Deleted(observed), kBoth);
}

TEST(Cleanup, APodThatHasJustEndedIsKeptByThePolicyRunning) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}, {{"cleanPodPolicy", "Running"}}));
  cluster.Settle();
  cluster.Exit("j-worker-0", 0);
  // The kubelet reports the exit first, and the phase later.
  cluster.pod("j-worker-0").fields()["status"]["phase"] = "Running";
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Succeeded");
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-0"));
  EXPECT_THAT(cluster.services(), ElementsAre("j-worker-0"));
}

TEST(Cleanup, AServiceWhosePodIsGoneIsDeletedToo) {
  Observed observed = TwoWorkers("Running", State::kSucceeded);
  observed.pods.erase(observed.pods.begin());
  EXPECT_THAT(Deleted(observed), ElementsAre("service j-worker-0"));
}

TEST(Cleanup, WhatIsBeingDeletedIsNotDeletedAgain) {
  Observed observed = TwoWorkers("All", State::kSucceeded);
  for (ReplicaPod& pod : observed.pods) pod.deletion_time = kNoon;
  for (ReplicaService& service : observed.services) service.deleting = true;
  EXPECT_THAT(Deleted(observed), IsEmpty());
}

TEST(Cleanup, APodOnALostNodeIsDeletedByForceAfterItsGracePeriod) {
  Observed observed = TwoWorkers("All", State::kSucceeded);
  observed.services.clear();
  observed.pods = {PodOf(kWorker, 0, PodOutcome::kTerminating)};
  observed.pods[0].node_loss = NodeLoss::kCertain;
  observed.pods[0].deletion_time = kNoon + seconds(30);
  const Plan before = Reconcile(observed, {}, kNoon);
  EXPECT_THAT(before.actions, IsEmpty());
  ASSERT_EQ(before.again_at, kNoon + seconds(40));
  const Plan after = Reconcile(observed, {}, *before.again_at);
  ASSERT_EQ(after.actions.size(), 1u);
  EXPECT_TRUE(after.actions[0].force);
  observed.pods[0].node_loss = NodeLoss::kPossible;
  EXPECT_EQ(Reconcile(observed, {}, *before.again_at).again_at, kNoon + seconds(90));
  EXPECT_TRUE(Reconcile(observed, {}, kNoon + seconds(90)).actions.at(0).force);
  observed.pods[0].node_loss = NodeLoss::kNone;
  EXPECT_THAT(Reconcile(observed, {}, *before.again_at).actions, IsEmpty());
}

TEST(Cleanup, OnlyThePodGroupOfTheJobIsDeleted) {
  Observed observed = TwoWorkers("None", State::kSucceeded);
  observed.pod_group = MakePodGroup(observed.job, {}, "volcano", {});
  EXPECT_THAT(Deleted(observed), ElementsAre("group j"));
  observed.pod_group->metadata()["ownerReferences"] = json::array();
  EXPECT_THAT(Deleted(observed), IsEmpty());
}

// A job that ended at noon.
Observed Ended(const json& policy, std::string_view how = kSucceeded) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(1)}}, policy));
  observed.job.status.conditions.Set(how, true, "Any", "", kNoon);
  observed.job.status.completion_time = kNoon;
  return observed;
}

TEST(Cleanup, T_TTL1_TheTimeToLiveCountsFromTheCompletion) {
  const Observed five = Ended({{"ttlSecondsAfterFinished", 5}});
  const Plan early = Reconcile(five, {}, kNoon + seconds(2));
  EXPECT_EQ(early.again_at, kNoon + seconds(5));
  EXPECT_THAT(DeletedBy(early), IsEmpty());
  EXPECT_THAT(DeletedBy(Reconcile(five, {}, kNoon + seconds(5))), ElementsAre("job j"));
  EXPECT_EQ(Reconcile(Ended(json::object()), {}, kNoon).again_at, std::nullopt);
  Observed running;
  running.job = ParsedJob(JobObject({{"Worker", Role(1)}}, {{"ttlSecondsAfterFinished", 5}}));
  EXPECT_EQ(Reconcile(running, {}, kNoon).again_at, std::nullopt);
}

TEST(Cleanup, T_I6_SucceededAndFailedJobsDisappear) {
  for (const auto how : {kSucceeded, kFailed}) {
    const Observed job = Ended({{"ttlSecondsAfterFinished", 3}}, how);
    EXPECT_THAT(DeletedBy(Reconcile(job, {}, kNoon + seconds(2))), IsEmpty()) << how;
    EXPECT_THAT(DeletedBy(Reconcile(job, {}, kNoon + seconds(3))), ElementsAre("job j")) << how;
  }
}

TEST(Cleanup, T_I7_OnlyAFinishedJobWithATimeToLiveIsRemoved) {
  const auto day_later = kNoon + std::chrono::hours(24);
  EXPECT_THAT(DeletedBy(Reconcile(Ended(json::object()), {}, day_later)), IsEmpty());
  EXPECT_THAT(DeletedBy(Reconcile(Ended({{"ttlSecondsAfterFinished", 180}}), {}, day_later)),
              ElementsAre("job j"));
  EXPECT_THAT(DeletedBy(Reconcile(Ended({{"ttlSecondsAfterFinished", 0}}), {}, kNoon)),
              ElementsAre("job j"));
}

TEST(Cleanup, T_I7_ASuspendedJobIsKept) {
  for (const json& policy :
       {json{{"suspend", true}}, json{{"suspend", true}, {"ttlSecondsAfterFinished", 0}}}) {
    Observed observed = Ended(policy);
    observed.job.status.completion_time.reset();
    EXPECT_THAT(DeletedBy(Reconcile(observed, {}, kNoon)), IsEmpty());
  }
}

TEST(Cleanup, T_TTL1_Q6_AFinishedJobWithoutCompletionTimeExpiresByItsCondition) {
  Observed observed = Ended({{"ttlSecondsAfterFinished", 5}}, kFailed);
  observed.job.status.completion_time.reset();
  EXPECT_EQ(Reconcile(observed, {}, kNoon).again_at, kNoon + seconds(5));
  EXPECT_THAT(DeletedBy(Reconcile(observed, {}, kNoon + seconds(5))), ElementsAre("job j"));
}

TEST(Cleanup, ATimeToLiveOfZeroRemovesTheJobInThePassThatEndsIt) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}},
                                 {{"ttlSecondsAfterFinished", 0}, {"cleanPodPolicy", "All"}}));
  cluster.Settle();
  cluster.Exit("j-worker-0", 0);
  const Plan last = cluster.Pass();
  EXPECT_TRUE(last.milestones.succeeded);
  EXPECT_FALSE(cluster.job_exists());
}

// The pod of worker 0 of a deleted job of the same name, on a node that is lost. Its grace period
// ends at noon.
ReplicaPod PodOfEarlierJob() {
  ReplicaPod pod = PodOf(kWorker, 0, PodOutcome::kTerminating);
  pod.uid = "earlier-pod";
  pod.owner = "earlier-job";
  pod.owner_is_job = true;
  pod.node_loss = NodeLoss::kCertain;
  return pod;
}

// The uids of the pods that the plan deletes by force.
std::vector<std::string> Forced(const Plan& plan) {
  std::vector<std::string> out;
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::kDeletePod && action.force) out.push_back(action.uid);
  }
  return out;
}

TEST(Cleanup, K45_APodOfADeletedJobOnALostNodeDoesNotBlockAJobOfTheSameName) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(1)}}));
  observed.pods = {PodOfEarlierJob()};

  const Plan before = Reconcile(observed, {}, kNoon + seconds(9));

  EXPECT_THAT(DeletedBy(before), IsEmpty());
  EXPECT_EQ(before.again_at, kNoon + seconds(10));
  EXPECT_THAT(Forced(Reconcile(observed, {}, kNoon + seconds(10))), ElementsAre("earlier-pod"));
}

TEST(Cleanup, OnlyTheNameOfAReplicaIsTakenFromAPodOfADeletedJob) {
  const auto deleted = [](const ReplicaPod& pod) {
    Observed observed;
    observed.job = ParsedJob(JobObject({{"Worker", Role(1)}}));
    observed.pods = {pod};
    return DeletedBy(Reconcile(observed, {}, kNoon + minutes(5)));
  };
  ASSERT_THAT(deleted(PodOfEarlierJob()), ElementsAre("pod j-worker-0"));
  ReplicaPod pod = PodOfEarlierJob();
  pod.owner_is_job = false;
  EXPECT_THAT(deleted(pod), IsEmpty()) << "another kind of owner";
  pod = PodOfEarlierJob();
  pod.node_loss = NodeLoss::kNone;
  EXPECT_THAT(deleted(pod), IsEmpty()) << "its kubelet answers";
  pod = PodOfEarlierJob();
  pod.deletion_time.reset();
  EXPECT_THAT(deleted(pod), IsEmpty()) << "it is not being deleted";
  pod = PodOfEarlierJob();
  pod.job = "other";
  EXPECT_THAT(deleted(pod), IsEmpty()) << "the label of another job";
  pod = PodOfEarlierJob();
  pod.name = "debug-copy";
  EXPECT_THAT(deleted(pod), IsEmpty()) << "another name";
  pod = PodOfEarlierJob();
  pod.slot.index = 7;
  pod.name = "j-worker-7";
  EXPECT_THAT(deleted(pod), IsEmpty()) << "no replica has this index";
}

TEST(Cleanup, K45_ALostNodeDoesNotBlockADeletionInTheForeground) {
  Observed observed = TwoWorkers("None", State::kUnfinished);
  observed.job.deleting = true;
  ReplicaPod& lost = observed.pods[0];
  lost.outcome = PodOutcome::kTerminating;
  lost.node_loss = NodeLoss::kCertain;
  lost.deletion_time = kNoon;
  observed.pods.push_back(PodOfEarlierJob());

  const Plan before = ReconcileDeletion(observed, kNoon);

  EXPECT_THAT(before.actions, IsEmpty());
  EXPECT_EQ(before.again_at, kNoon + seconds(10));
  const Plan after = ReconcileDeletion(observed, kNoon + seconds(10));
  EXPECT_THAT(Forced(after), ElementsAre("uid-of-j-worker-0"));
  EXPECT_EQ(after.actions.size(), 1u);
}

}  // namespace
}  // namespace edl::reconciler
