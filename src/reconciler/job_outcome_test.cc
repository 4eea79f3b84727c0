#include "reconciler/job_outcome.h"

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr ReplicaType kChief = ReplicaType::kChief;
constexpr ReplicaType kEvaluator = ReplicaType::kEvaluator;
constexpr ReplicaType kPs = ReplicaType::kPs;
constexpr ReplicaType kWorker = ReplicaType::kWorker;

// A pod for each letter, with indices from 0: "s": succeeded, "f": failed, "a": active,
// "p": pending, "-": no pod.
std::vector<ReplicaPod> PodsOf(ReplicaType type, const std::string& letters, int exit_code = 1) {
  std::vector<ReplicaPod> pods;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (letters[i] == '-') continue;
    const PodOutcome outcome = letters[i] == 's'   ? PodOutcome::kSucceeded
                               : letters[i] == 'f' ? PodOutcome::kFailed
                               : letters[i] == 'a' ? PodOutcome::kActive
                                                   : PodOutcome::kPending;
    pods.push_back(PodOf(type, static_cast<int>(i), outcome));
    if (outcome == PodOutcome::kFailed) pods.back().exit_code = exit_code;
  }
  return pods;
}

// The pods of a job, one letter each.
struct Pods {
  std::string chief;
  std::string worker;
  std::string ps;
  std::string evaluator;
};

Observed Make(const Pods& pods, const std::string& restart = "Never", int exit_code = 1) {
  json roles = json::object();
  Observed observed;
  const auto add = [&](ReplicaType type, const std::string& letters) {
    if (letters.empty()) return;
    roles[std::string(NameOf(type))] = Role(static_cast<int>(letters.size()), restart);
    for (const ReplicaPod& pod : PodsOf(type, letters, exit_code)) observed.pods.push_back(pod);
  };
  add(kChief, pods.chief);
  add(kWorker, pods.worker);
  add(kPs, pods.ps);
  add(kEvaluator, pods.evaluator);
  observed.job = ParsedJob(JobObject(roles));
  return observed;
}

// The conditions after one pass: "Created Running- Failed".
std::string After(const Observed& observed) {
  return TextOf(Reconcile(observed, {}, kNoon).status.conditions);
}

Observed AllWorkers(Observed observed) {
  observed.job.all_workers_must_succeed = true;
  return observed;
}

TEST(JobOutcome, T_I16_AChiefDecidesAboutTheJob) {
  EXPECT_EQ(After(Make({.chief = "s", .worker = "s"})), "Created Succeeded");
  EXPECT_EQ(After(Make({.chief = "a", .worker = "p"})), "Created Running");
  EXPECT_EQ(After(Make({.chief = "f", .worker = "p"})), "Created Failed");
  EXPECT_EQ(After(Make({.chief = "a", .worker = "ssss"})), "Created Running");
  EXPECT_EQ(After(Make({.chief = "f", .worker = "ssss"})), "Created Failed");
}

TEST(JobOutcome, T_I16_WithoutAChiefTheWorkersDecide) {
  EXPECT_EQ(After(Make({.worker = "f"})), "Created Failed");
  EXPECT_EQ(After(Make({.worker = "s"})), "Created Succeeded");
  EXPECT_EQ(After(Make({.worker = "a"})), "Created Running");
  EXPECT_EQ(After(Make({.worker = "aass", .ps = "aa"})), "Created Running");
  EXPECT_EQ(After(Make({.worker = "aaff"})), "Created Running- Failed");
  EXPECT_EQ(After(Make({.worker = "ssff"})), "Created Failed");
  EXPECT_EQ(After(Make({.worker = "saaa"})), "Created Succeeded");
}

TEST(JobOutcome, T_I16_WithAllWorkersEachWorkerMustSucceed) {
  EXPECT_EQ(After(AllWorkers(Make({.worker = "saaa"}))), "Created Running");
  EXPECT_EQ(After(AllWorkers(Make({.worker = "ssss"}))), "Created Succeeded");
  EXPECT_EQ(After(AllWorkers(Make({.worker = "saaf"}))), "Created Running- Failed");
}

TEST(JobOutcome, T_I16_AFailureInAnotherRoleFailsAJobWhoseChiefRuns) {
  EXPECT_EQ(After(Make({.chief = "a", .worker = "ffff"})), "Created Running- Failed");
  EXPECT_EQ(After(Make({.chief = "a", .worker = "aaaa", .ps = "fa"})), "Created Running- Failed");
}

TEST(JobOutcome, T_I16_PodsEndedByASignalAreRestartedUnderExitCode) {
  EXPECT_EQ(After(Make({.chief = "f", .worker = "ffff"}, "ExitCode", 130)), "Created Restarting");
}

TEST(JobOutcome, T_I16_Q5_AJobDoesNotSucceedAndFail) {
  EXPECT_EQ(After(Make({.chief = "s", .worker = "ffff"})), "Created Succeeded");
  EXPECT_EQ(After(Make({.worker = "sf"})), "Created Failed");
}

TEST(JobOutcome, T_I15_WorkerZeroCompletesTheJob) {
  EXPECT_EQ(After(Make({.worker = "a"})), "Created Running");
  EXPECT_EQ(After(Make({.worker = "s"})), "Created Succeeded");
  EXPECT_EQ(After(Make({.worker = "sf"}, "OnFailure")), "Created Succeeded");
  EXPECT_EQ(After(Make({.worker = "fa"}, "OnFailure")), "Created Restarting");
}

TEST(JobOutcome, T_I15_WithoutWorkersTheChiefCompletesTheJob) {
  EXPECT_EQ(After(Make({.chief = "s"})), "Created Succeeded");
  Observed master;
  master.job = ParsedJob(JobObject({{"Master", Role(1)}}));
  master.pods = PodsOf(ReplicaType::kMaster, "s");
  EXPECT_EQ(After(master), "Created Succeeded");
}

TEST(JobOutcome, Q13_ParameterServersAndEvaluatorsDecideNothing) {
  EXPECT_EQ(After(Make({.worker = "p", .ps = "s", .evaluator = "s"})), "Created");
  EXPECT_EQ(After(Make({.worker = "p", .ps = "a", .evaluator = "a"})), "Created");
}

TEST(JobOutcome, ARoleWithoutReplicasDoesNotSucceed) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Chief", Role(0)}, {"Worker", Role(1)}}));
  EXPECT_EQ(After(observed), "Created");
  observed.pods = PodsOf(kWorker, "s");
  EXPECT_EQ(After(observed), "Created Succeeded");
}

TEST(JobOutcome, Q4_AFailureThatIsFinalIsNotHiddenByARestart) {
  Observed observed = Make({.chief = "f", .worker = "f"});
  observed.job.replicas.at(kChief).restart = RestartPolicy::kOnFailure;
  observed.job.status.conditions.Set(kRestarting, true, "TFJobRestarting", "", kNoon);
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_TRUE(plan.status.conditions.IsTrue(kFailed));
  EXPECT_EQ(plan.status.completion_time, kNoon);
}

TEST(JobOutcome, T_I12_ACodeBelow128FailsAJobUnderExitCode) {
  const Plan plan = Reconcile(Make({.chief = "f", .worker = "a"}, "ExitCode", 1), {}, kNoon);
  EXPECT_THAT(plan.status.conditions.Find(kFailed)->message,
              testing::StartsWith(
                  "job \"j\" is failing because \"Chief\" replica(s) failed. Pod j-chief-0: "));
  EXPECT_EQ(plan.failed_log.pod, "j-chief-0");
  EXPECT_EQ(plan.events.back().type, kube::EventType::kWarning);
}

TEST(JobOutcome, AFailureNamesTheRoleThePodAndTheReason) {
  const Plan plan = Reconcile(Make({.worker = "aff"}), {}, kNoon);
  EXPECT_EQ(plan.status.conditions.Find(kFailed)->message,
            "TFJob ns/j has failed because 2 Worker replica(s) failed. Pod j-worker-1: exit code 1 "
            "(Error).");
  EXPECT_EQ(plan.failed_log.pod, "j-worker-1");
}

// A job whose worker 0 runs and was restarted in place this often.
Observed Restarted(int64_t limit, int64_t restarts, const std::string& policy = "OnFailure") {
  Observed observed = Make({.worker = "a"}, policy);
  observed.job.backoff_limit = limit;
  observed.pods[0].restarts = restarts;
  return observed;
}

TEST(JobOutcome, T_B1_RestartsInPlaceCountTowardsTheBackoffLimit) {
  const auto failed = [](const Observed& observed) {
    return Reconcile(observed, {}, kNoon).milestones.failed;
  };
  EXPECT_FALSE(failed(Restarted(0, 0)));
  EXPECT_TRUE(failed(Restarted(0, 1)));
  EXPECT_FALSE(failed(Restarted(3, 2)));
  EXPECT_TRUE(failed(Restarted(3, 3)));
  EXPECT_TRUE(failed(Restarted(-5, 1)));
  EXPECT_FALSE(failed(Restarted(3, 3, "Never")));
  Observed unlimited = Restarted(0, 1000);
  unlimited.job.backoff_limit.reset();
  EXPECT_FALSE(failed(unlimited));
}

TEST(JobOutcome, Q2_RestartsOfAPodThatIsReplacedCountOnce) {
  Observed observed = Make({.worker = "fa"}, "OnFailure");
  observed.job.backoff_limit = 3;
  observed.pods[0].restarts = 1;
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_EQ(plan.status.retries, 2);
  EXPECT_FALSE(plan.milestones.failed);
}

TEST(JobOutcome, RestartsOfASidecarDoNotFailAReplicaThatHasSucceeded) {
  Observed observed = AllWorkers(Make({.worker = "as"}, "OnFailure"));
  observed.job.backoff_limit = 3;
  observed.job.status.completed[kWorker] = {1};
  observed.pods[1].restarts = 1000;
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_FALSE(plan.milestones.failed);
  EXPECT_EQ(plan.status.retries, 0);
}

TEST(JobOutcome, Q2_RestartsBeforeASuccessStayCounted) {
  Observed observed = AllWorkers(Make({.worker = "as"}, "OnFailure"));
  observed.job.backoff_limit = 3;
  observed.pods[1].restarts = 2;
  EXPECT_EQ(Reconcile(observed, {}, kNoon).status.retries, 2);
}

TEST(JobOutcome, Q2_RestartsOfADisruptedPodStayCountedAndTheDisruptionDoesNotCount) {
  for (const PodOutcome outcome : {PodOutcome::kDisrupted, PodOutcome::kTerminating}) {
    Observed observed = Restarted(6, 5);
    observed.pods[0].outcome = outcome;
    const Plan plan = Reconcile(observed, {}, kNoon);
    EXPECT_EQ(plan.status.retries, 5);
    observed.job.status = plan.status;
    EXPECT_EQ(Reconcile(observed, {}, kNoon).status.retries, 5) << "a second pass counts it again";
    observed.pods = {PodOf(kWorker, 0, PodOutcome::kActive)};
    observed.pods[0].uid = "next";
    observed.pods[0].restarts = 1;
    EXPECT_TRUE(Reconcile(observed, {}, kNoon).milestones.failed);
  }
}

TEST(JobOutcome, TheMessageOfTheLimitNamesThePodThatRunsAgain) {
  Observed observed = Restarted(3, 3);
  observed.pods[0].last_exit = "exit code 137 (OOMKilled)";
  observed.pods[0].log_container = "tensorflow";
  observed.pods[0].log_previous = true;
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_EQ(plan.status.conditions.Find(kFailed)->message,
            "Job j has failed because it has reached the specified backoff limit. Pod j-worker-0: "
            "exit code 137 (OOMKilled).");
  EXPECT_EQ(plan.failed_log,
            (LogSource{.pod = "j-worker-0", .container = "tensorflow", .previous = true}));
}

TEST(JobOutcome, T_B1_TheMessageSaysThatTheLimitIsReached) {
  Observed observed = Restarted(3, 3);
  observed.pods[0].log_container = "tensorflow";
  observed.pods[0].reason = "Error pod j-worker-0 container tensorflow waiting: CrashLoopBackOff";
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_THAT(
      plan.status.conditions.Find(kFailed)->message,
      testing::StartsWith("Job j has failed because it has reached the specified backoff limit"));
  EXPECT_THAT(plan.status.conditions.Find(kFailed)->message, HasSubstr("CrashLoopBackOff"));
  EXPECT_EQ(plan.failed_log.pod, "j-worker-0");
}

Observed Dynamic(Observed observed, const std::string& least = "") {
  observed.job.dynamic_workers = true;
  if (!least.empty()) observed.job.annotations[kMinWorkers] = least;
  return observed;
}

TEST(JobOutcome, AJobWithDynamicWorkersGoesOnWithoutThoseThatFailed) {
  EXPECT_EQ(After(Dynamic(Make({.worker = "aaf"}))), "Created Running");
  EXPECT_EQ(After(Dynamic(Make({.worker = "ffa"}))), "Created Running");
  EXPECT_EQ(After(Dynamic(Make({.worker = "fff"}))), "Created Failed");
  EXPECT_EQ(After(Dynamic(Make({.worker = "aff"}), "2")), "Created Running- Failed");
  EXPECT_EQ(After(Dynamic(Make({.chief = "a", .worker = "af"}))), "Created Running");
  EXPECT_EQ(After(Dynamic(Make({.chief = "a", .worker = "a", .ps = "f"}))),
            "Created Running- Failed");
}

TEST(JobOutcome, AFinalExitCodeEndsAJobWithDynamicWorkersUnlessItHasAMinimum) {
  EXPECT_EQ(After(Dynamic(Make({.worker = "aaf"}, "ExitCode", 1))), "Created Running- Failed");
  EXPECT_EQ(After(Dynamic(Make({.worker = "aaf"}, "ExitCode", 1), "2")), "Created Running");
  EXPECT_EQ(After(Dynamic(Make({.worker = "aaf"}, "ExitCode", 1), "two")),
            "Created Running- Failed");
}

TEST(JobOutcome, AJobWithDynamicWorkersSucceedsWithTheRest) {
  EXPECT_EQ(After(Dynamic(Make({.worker = "fss"}))), "Created Succeeded");
  EXPECT_EQ(After(Dynamic(Make({.worker = "fsa"}))), "Created Running");
}

Observed Waiting(Observed observed) {
  observed.job.annotations[kWaitForEvaluator] = "true";
  return observed;
}

TEST(JobOutcome, Q15_AJobCanWaitForItsEvaluator) {
  EXPECT_EQ(After(Make({.chief = "s", .evaluator = "a"})), "Created Succeeded");
  EXPECT_EQ(After(Waiting(Make({.chief = "s", .evaluator = "a"}))), "Created Running");
  EXPECT_EQ(After(Waiting(Make({.chief = "s", .evaluator = "s"}))), "Created Succeeded");
  EXPECT_EQ(After(Waiting(Make({.worker = "s", .evaluator = "a"}))), "Created Running");
  EXPECT_EQ(After(Waiting(Make({.chief = "s"}))), "Created Succeeded");
}

TEST(JobOutcome, Q15_AnEvaluatorThatFailedAfterTrainingHasEnded) {
  EXPECT_EQ(After(Waiting(Make({.chief = "s", .evaluator = "f"}))), "Created Succeeded");
  EXPECT_EQ(After(Waiting(Make({.chief = "a", .evaluator = "f"}))), "Created Running- Failed");
}

TEST(JobOutcome, Q15_WhileTheEvaluatorRunsOtherFailuresDoNotMatter) {
  EXPECT_EQ(After(Waiting(Make({.chief = "s", .worker = "f", .evaluator = "a"}))),
            "Created Running");
  // The workers decide, and one that fails after the others is too late.
  Observed workers = Waiting(Make({.worker = "sf", .evaluator = "a"}));
  EXPECT_EQ(After(workers), "Created Failed");
  workers.job.status.completed[kWorker] = {0};
  EXPECT_EQ(After(workers), "Created Running");
}

TEST(JobOutcome, Q15_AnEvaluatorThatFailsAgainAndAgainIsWaitedForUpToTheLimit) {
  Observed observed = Waiting(Make({.chief = "s", .evaluator = "f"}, "ExitCode", 137));
  observed.job.backoff_limit = 2;
  const Plan first = Reconcile(observed, {}, kNoon);
  EXPECT_EQ(first.status.retries, 1);
  EXPECT_FALSE(first.status.conditions.finished());
  observed.job.status = first.status;
  for (ReplicaPod& pod : observed.pods) pod.uid += "-next";
  const Plan second = Reconcile(observed, {}, kNoon);
  EXPECT_TRUE(second.status.conditions.IsTrue(kSucceeded));
  EXPECT_FALSE(second.status.conditions.IsTrue(kFailed));
}

TEST(JobOutcome, AFailedPodOfAReplicaThatHasSucceededDoesNotMatter) {
  Observed observed = AllWorkers(Make({.worker = "af"}));
  observed.job.status.completed[kWorker] = {1};
  EXPECT_EQ(After(observed), "Created Running");
  EXPECT_EQ(Reconcile(observed, {}, kNoon).status.replicas.at(kWorker),
            (ReplicaCounts{.active = 1, .succeeded = 1, .failed = 0}));
}

}  // namespace
}  // namespace edl::reconciler
