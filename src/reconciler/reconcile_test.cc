#include "reconciler/reconcile.h"

#include <algorithm>

#include "reconciler/cluster_config.h"
#include "reconciler/pod_group.h"
#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = Action::Kind;

constexpr ReplicaType kWorker = ReplicaType::kWorker;
constexpr ReplicaType kPs = ReplicaType::kPs;

// The names of the objects that a plan creates or deletes.
std::vector<std::string> Names(const Plan& plan, Kind kind) {
  std::vector<std::string> names;
  for (const Action& action : plan.actions) {
    if (action.kind != kind) continue;
    names.push_back(action.name.empty() ? action.object.name() : action.name);
  }
  return names;
}

std::vector<std::string> Reasons(const Plan& plan) {
  std::vector<std::string> reasons;
  for (const JobEvent& event : plan.events) reasons.push_back(event.reason);
  return reasons;
}

const JobEvent& EventOf(const Plan& plan, const std::string& reason) {
  return *std::find_if(plan.events.begin(), plan.events.end(),
                       [&](const JobEvent& event) { return event.reason == reason; });
}

TEST(Reconcile, T_I17_EachReplicaGetsAPodAndAService) {
  ClusterModel local(JobObject({{"Worker", Role(1)}}));
  local.Pass();
  EXPECT_THAT(local.pods(), ElementsAre("j-worker-0"));
  EXPECT_THAT(local.services(), ElementsAre("j-worker-0"));
  EXPECT_EQ(local.conditions(), "Created");
  EXPECT_TRUE(local.status().start_time.has_value());
  ClusterModel cluster(JobObject({{"Worker", Role(4)}, {"PS", Role(2)}}));
  cluster.Pass();
  EXPECT_EQ(cluster.pods().size(), 6u);
  EXPECT_EQ(cluster.services().size(), 6u);
  for (const std::string& name : cluster.pods()) {
    EXPECT_EQ(cluster.pod(name).owners().at(0).uid, kJobUid) << name;
  }
}

TEST(Reconcile, T_I17_OnlyWhatIsMissingIsCreated) {
  struct Case {
    const char* workers;
    const char* servers;
    size_t created;
    const char* condition;
  };
  // A letter for each replica: "-": it has no pod; "p", "a", "s": pending, active, succeeded.
  for (const Case& each : {Case{"pppp", "pp", 0, "Created"}, Case{"aaaa", "aa", 0, "Running"},
                           Case{"pp--", "p-", 3, "Created"}, Case{"pa--", "pp", 2, "Running"},
                           Case{"-s--", "pp", 3, "Created"}, Case{"ssss", "aa", 0, "Succeeded"}}) {
    Observed observed;
    observed.job = ParsedJob(JobObject({{"Worker", Role(4)}, {"PS", Role(2)}}));
    const auto add = [&](ReplicaType type, const std::string& letters) {
      for (size_t i = 0; i < letters.size(); ++i) {
        if (letters[i] == '-') continue;
        const auto outcome = letters[i] == 'p'   ? PodOutcome::kPending
                             : letters[i] == 'a' ? PodOutcome::kActive
                                                 : PodOutcome::kSucceeded;
        observed.pods.push_back(PodOf(type, static_cast<int>(i), outcome));
        observed.services.push_back(ServiceOf(type, static_cast<int>(i)));
      }
    };
    add(kWorker, each.workers);
    add(kPs, each.servers);
    const Plan plan = Reconcile(observed, {}, kNoon);
    EXPECT_EQ(Names(plan, Kind::kCreatePod).size(), each.created) << each.workers;
    EXPECT_EQ(Names(plan, Kind::kCreateService).size(), each.created) << each.workers;
    EXPECT_EQ(plan.status.conditions.all().back().type, each.condition) << each.workers;
    EXPECT_EQ(plan.status.start_time, kNoon) << each.workers;
  }
}

TEST(Reconcile, T_P5_ReplicasAreCountedByTheirState) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(5, "OnFailure")}}));
  observed.pods = {PodOf(kWorker, 1, PodOutcome::kActive), PodOf(kWorker, 2, PodOutcome::kFailed),
                   PodOf(kWorker, 3, PodOutcome::kSucceeded),
                   PodOf(kWorker, 4, PodOutcome::kPending)};
  EXPECT_EQ(Reconcile(observed, {}, kNoon).status.replicas.at(kWorker),
            (ReplicaCounts{.active = 1, .succeeded = 1, .failed = 1}));
}

TEST(Reconcile, T_P5_Q3_APodThatIsBeingDeletedIsNotCountedAsFailed) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(2)}}));
  observed.pods = {PodOf(kWorker, 0, PodOutcome::kActive),
                   PodOf(kWorker, 1, PodOutcome::kTerminating)};
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_EQ(plan.status.replicas.at(kWorker).failed, 0);
  EXPECT_TRUE(plan.status.conditions.IsTrue(kRunning));
  // Its name is not free yet.
  EXPECT_THAT(Names(plan, Kind::kCreatePod), IsEmpty());
}

TEST(Reconcile, T_P4_ARoleHasOnlyItsOwnPods) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(1)}, {"PS", Role(1)}}));
  observed.pods = {PodOf(kPs, 0, PodOutcome::kActive)};
  EXPECT_THAT(Names(Reconcile(observed, {}, kNoon), Kind::kCreatePod), ElementsAre("j-worker-0"));
}

TEST(Reconcile, T_P3_SlotsAreThoseOfTheSpecAndTheRestIsDeleted) {
  struct Case {
    std::vector<int> pods;
    int replicas;
    std::vector<std::string> created;
    std::vector<std::string> deleted;
  };
  for (const Case& each :
       {Case{{0, 1, 2}, 3, {}, {}}, Case{{0, 1, 2}, 4, {"j-worker-3"}, {}},
        Case{{0, 1, 2}, 2, {}, {"j-worker-2"}}, Case{{0, 1, 2, 4}, 3, {}, {"j-worker-4"}}}) {
    Observed observed;
    observed.job = ParsedJob(JobObject({{"Worker", Role(each.replicas)}}));
    for (const int index : each.pods) {
      observed.pods.push_back(PodOf(kWorker, index, PodOutcome::kPending));
      observed.services.push_back(ServiceOf(kWorker, index));
    }
    const Plan plan = Reconcile(observed, {}, kNoon);
    EXPECT_EQ(Names(plan, Kind::kCreatePod), each.created);
    EXPECT_EQ(Names(plan, Kind::kCreateService), each.created);
    EXPECT_EQ(Names(plan, Kind::kDeletePod), each.deleted);
    EXPECT_EQ(Names(plan, Kind::kDeleteService), each.deleted);
  }
}

TEST(Reconcile, T_P3_Q7_AGapAboveTheReplicasIsNotFilled) {
  ClusterModel cluster(JobObject({{"Worker", Role(5)}}));
  cluster.Settle();
  cluster.Remove("j-worker-3");
  cluster.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 2;
  EXPECT_THAT(Names(cluster.Pass(), Kind::kCreatePod), IsEmpty());
  cluster.Settle();
  EXPECT_EQ(cluster.created("j-worker-3"), 1);
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-0", "j-worker-1"));
}

json DynamicJob(int replicas) {
  json job = JobObject({{"Worker", Role(replicas)}});
  job["spec"]["enableDynamicWorker"] = true;
  return job;
}

TEST(Reconcile, T_I13_ScalingDownDeletesTheHighestIndices) {
  ClusterModel cluster(DynamicJob(3));
  cluster.Settle();
  cluster.RunAll();
  cluster.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 2;
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-0", "j-worker-1"));
  EXPECT_THAT(cluster.services(), ElementsAre("j-worker-0", "j-worker-1"));
  EXPECT_EQ(cluster.conditions(), "Created Running");
}

TEST(Reconcile, T_I14_ScalingUpCreatesTheMissingIndices) {
  ClusterModel cluster(DynamicJob(1));
  cluster.Settle();
  cluster.RunAll();
  cluster.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 3;
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-0", "j-worker-1", "j-worker-2"));
  EXPECT_EQ(cluster.created("j-worker-0"), 1);
}

TEST(Reconcile, ScalingAJobWithOrWithoutDynamicWorkersKeepsItRunning) {
  for (const bool dynamic : {true, false}) {
    json job = JobObject({{"Worker", Role(2)}, {"PS", Role(2)}});
    job["spec"]["enableDynamicWorker"] = dynamic;
    ClusterModel cluster(job);
    cluster.graceful = true;
    cluster.Settle();
    cluster.RunAll();
    cluster.Settle();
    cluster.job()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 1;
    cluster.job()["spec"]["tfReplicaSpecs"]["PS"]["replicas"] = 1;
    cluster.Settle();
    EXPECT_EQ(cluster.conditions(), "Created Running");
    cluster.Reap();
    cluster.Settle();
    EXPECT_THAT(cluster.pods(), ElementsAre("j-ps-0", "j-worker-0"));
    EXPECT_EQ(cluster.conditions(), "Created Running");
  }
}

TEST(Reconcile, ARoleThatTheSpecLostIsDeletedAndForgotten) {
  ClusterModel cluster(JobObject({{"Worker", Role(2)}, {"PS", Role(1)}}));
  cluster.Settle();
  cluster.RunAll();
  cluster.Exit("j-ps-0", 0);
  cluster.Settle();
  EXPECT_TRUE(cluster.status().completed.contains(kPs));
  cluster.job()["spec"]["tfReplicaSpecs"].erase("PS");
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-0", "j-worker-1"));
  EXPECT_FALSE(cluster.status().replicas.contains(kPs));
  EXPECT_FALSE(cluster.status().completed.contains(kPs));
}

TEST(Reconcile, T_I18_ASuspendedJobStartsNothing) {
  ClusterModel cluster(JobObject({{"Worker", Role(2)}}, {{"suspend", true}}));
  const Plan first = cluster.Pass();
  EXPECT_THAT(Reasons(first), ElementsAre("TFJobSuspended"));
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Suspended");
  EXPECT_EQ(cluster.status().start_time, std::nullopt);
  EXPECT_THAT(cluster.pods(), IsEmpty());
  EXPECT_THAT(cluster.services(), IsEmpty());
  EXPECT_THAT(cluster.Pass().events, IsEmpty());
}

TEST(Reconcile, T_I19_AJobCanBeSuspendedAndResumed) {
  ClusterModel cluster(JobObject({{"Chief", Role(1)}, {"Worker", Role(1)}}));
  cluster.Settle();
  cluster.RunAll();
  cluster.Settle();
  const auto started = cluster.status().start_time;
  cluster.Wait(seconds(60));

  cluster.job()["spec"]["runPolicy"]["suspend"] = true;
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), IsEmpty());
  EXPECT_THAT(cluster.services(), IsEmpty());
  EXPECT_EQ(cluster.status().replicas.at(kWorker).active, 0);
  EXPECT_EQ(cluster.status().start_time, started);
  EXPECT_EQ(cluster.conditions(), "Created Running- Suspended");
  EXPECT_EQ(cluster.status().conditions.Find(kRunning)->reason, "TFJobSuspended");

  cluster.job()["spec"]["runPolicy"]["suspend"] = false;
  cluster.Settle();
  cluster.RunAll();
  cluster.Settle();
  EXPECT_EQ(cluster.pods().size(), 2u);
  EXPECT_EQ(cluster.conditions(), "Created Suspended- Running");
  EXPECT_EQ(cluster.status().conditions.Find(kSuspended)->reason, "TFJobResumed");
  EXPECT_EQ(cluster.status().start_time, *started + seconds(60));
}

TEST(Reconcile, Q14_AReplicaThatSucceededWhenTheJobIsSuspendedDoesNotRunAgain) {
  ClusterModel cluster(JobObject({{"Worker", Role(2)}}));
  cluster.job()["spec"]["successPolicy"] = "AllWorkers";
  cluster.Settle();
  cluster.RunAll();
  cluster.Settle();
  cluster.Exit("j-worker-1", 0);
  cluster.job()["spec"]["runPolicy"]["suspend"] = true;
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), IsEmpty());
  cluster.job()["spec"]["runPolicy"]["suspend"] = false;
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-0"));
}

TEST(Reconcile, Q2_RestartsStayCountedWhenAJobIsSuspended) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "OnFailure")}}, {{"backoffLimit", 6}}));
  cluster.graceful = true;
  cluster.Settle();
  cluster.SetRestarts("j-worker-0", 5);
  cluster.job()["spec"]["runPolicy"]["suspend"] = true;
  cluster.Settle();
  EXPECT_EQ(cluster.status().retries, 5);
  cluster.job()["spec"]["runPolicy"]["suspend"] = false;
  cluster.Settle();
  EXPECT_EQ(cluster.status().retries, 5) << "the pod still terminates";
  cluster.Reap();
  cluster.Settle();
  EXPECT_TRUE(cluster.status().replacing.empty());
  EXPECT_EQ(cluster.status().retries, 5);
}

TEST(Reconcile, T_I4_AJobFailsAtItsDeadline) {
  const auto left_after = [](json policy) {
    policy["cleanPodPolicy"] = "All";
    ClusterModel cluster(JobObject({{"Worker", Role(4)}, {"PS", Role(2)}}, policy));
    cluster.Settle();
    cluster.RunAll();
    cluster.Wait(seconds(2));
    cluster.Settle();
    EXPECT_EQ(cluster.pods().size(), cluster.services().size());
    return cluster.pods().size();
  };
  EXPECT_EQ(left_after(json::object()), 6u);
  EXPECT_EQ(left_after({{"activeDeadlineSeconds", 2}}), 0u);
}

TEST(Reconcile, T_I4_Q1_TheDeadlineHasATimer) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}, {{"activeDeadlineSeconds", 60}}));
  cluster.Settle();
  cluster.RunAll();
  cluster.Settle();
  const Plan plan = cluster.Pass();
  ASSERT_EQ(plan.again_at, kNoon + seconds(60));
  cluster.Wait(*plan.again_at - cluster.now());
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Running- Failed");
  EXPECT_EQ(cluster.status().conditions.Find(kFailed)->message,
            "Job j has failed because it was active longer than specified deadline");
}

TEST(Reconcile, T_B2_ADeadlineOfZeroHasPassedAtOnce) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}, {{"activeDeadlineSeconds", 0}}));
  cluster.Pass();
  EXPECT_EQ(cluster.conditions(), "Created Failed");
  EXPECT_THAT(cluster.pods(), IsEmpty());
  ClusterModel later(JobObject({{"Worker", Role(1)}}, {{"activeDeadlineSeconds", 2}}));
  later.Pass();
  EXPECT_EQ(later.conditions(), "Created");
}

TEST(Reconcile, TheDeadlineStartsAgainWhenAJobIsResumed) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}, {{"activeDeadlineSeconds", 60}}));
  cluster.Settle();
  cluster.job()["spec"]["runPolicy"]["suspend"] = true;
  cluster.Settle();
  EXPECT_EQ(cluster.Pass().again_at, std::nullopt);
  cluster.Wait(minutes(10));
  cluster.job()["spec"]["runPolicy"]["suspend"] = false;
  cluster.Settle();
  EXPECT_EQ(cluster.Pass().again_at, kNoon + minutes(11));
}

TEST(Reconcile, T_I5_RestartsOfAllPodsCountTowardsTheBackoffLimit) {
  ClusterModel cluster(JobObject({{"Worker", Role(4, "OnFailure")}, {"PS", Role(2)}},
                                 {{"backoffLimit", 4}, {"cleanPodPolicy", "All"}}));
  cluster.Settle();
  cluster.RunAll();
  for (int i = 0; i < 3; ++i) cluster.SetRestarts(ReplicaName("j", kWorker, i), 1);
  cluster.Settle();
  EXPECT_EQ(cluster.pods().size(), 6u);
  cluster.SetRestarts("j-worker-3", 1);
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), IsEmpty());
  EXPECT_THAT(cluster.services(), IsEmpty());
  EXPECT_EQ(cluster.conditions(), "Created Running- Failed");
}

TEST(Reconcile, Q2_PodsThatWereReplacedCountTowardsTheBackoffLimit) {
  ClusterModel cluster(JobObject({{"Worker", Role(2, "ExitCode")}}, {{"backoffLimit", 3}}));
  cluster.Settle();
  for (int failures = 1; failures <= 3; ++failures) {
    cluster.RunAll();
    cluster.Settle();
    EXPECT_EQ(cluster.conditions(), "Created Running");
    cluster.Exit("j-worker-1", 137);
    cluster.Pass();
    EXPECT_EQ(cluster.status().retries, failures);
    cluster.Wait(minutes(5));
    cluster.Settle();
  }
  EXPECT_EQ(cluster.conditions(), "Created Running- Failed");
  EXPECT_THAT(cluster.status().conditions.Find(kFailed)->message, HasSubstr("backoff limit"));
  EXPECT_EQ(cluster.created("j-worker-1"), 3);
}

TEST(Reconcile, K45_AClockThatWasSetBackDoesNotDelayAReplacement) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "ExitCode")}}));
  cluster.Settle();
  for (int i = 0; i < 2; ++i) {
    cluster.RunAll();
    cluster.Settle();
    cluster.Exit("j-worker-0", 137);
    cluster.Settle();
    cluster.Wait(-std::chrono::hours(1));
    cluster.Settle();
  }
  EXPECT_EQ(cluster.created("j-worker-0"), 3);
}

TEST(Reconcile, T_I11_APodEndedByASignalIsReplaced) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "ExitCode")}}));
  cluster.Settle();
  cluster.RunAll();
  cluster.Settle();
  cluster.Exit("j-worker-0", 130);
  const Plan plan = cluster.Pass();
  EXPECT_THAT(Names(plan, Kind::kDeletePod), ElementsAre("j-worker-0"));
  EXPECT_TRUE(plan.milestones.restarted);
  EXPECT_EQ(plan.failed_log.pod, "j-worker-0");
  EXPECT_EQ(EventOf(plan, "ExitedWithCode").message, "Pod: ns.j-worker-0 exited with code 130");
  EXPECT_THAT(EventOf(plan, "TFJobRestarting").message,
              StartsWith("job j is restarting because Worker replica(s) failed."));
  EXPECT_EQ(cluster.conditions(), "Created Restarting");
  cluster.Settle();
  EXPECT_EQ(cluster.created("j-worker-0"), 2);
  EXPECT_EQ(cluster.conditions(), "Created Restarting");
  EXPECT_THAT(cluster.status().replacing, IsEmpty());
  cluster.RunAll();
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Running");
}

TEST(Reconcile, AJobIsRestartingUntilTheFailedPodIsReplaced) {
  ClusterModel cluster(JobObject({{"Worker", Role(2, "ExitCode")}}));
  cluster.Settle();
  for (int i = 0; i < 5; ++i) {
    cluster.RunAll();
    cluster.Exit("j-worker-1", 137);
    cluster.Wait(seconds(1));
    cluster.Settle();
  }
  // The last pod that failed waits for its replacement, and the other worker runs.
  ASSERT_TRUE(cluster.status().conditions.IsTrue(kRestarting));
  const json before = cluster.job();
  cluster.Wait(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.job(), before);
  cluster.Wait(minutes(5));
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Running");
}

TEST(Reconcile, AProgramThatFailsAtOnceIsReplacedEverMoreSlowly) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "ExitCode")}}));
  cluster.Settle();
  std::vector<seconds> delays;
  for (int i = 0; i < 12; ++i) {
    const WallTime failed_at = cluster.now();
    cluster.Exit("j-worker-0", 137);
    for (Plan plan = cluster.Pass(); cluster.has("j-worker-0"); plan = cluster.Pass()) {
      if (!plan.again_at) break;
      cluster.Wait(*plan.again_at - cluster.now());
    }
    cluster.Settle();
    delays.push_back(std::chrono::duration_cast<seconds>(cluster.now() - failed_at));
  }
  EXPECT_THAT(delays, ElementsAre(seconds(0), seconds(1), seconds(2), seconds(4), seconds(8),
                                  seconds(16), seconds(32), seconds(64), seconds(128), seconds(256),
                                  seconds(300), seconds(300)));
  EXPECT_EQ(cluster.status().retries, 12);
}

TEST(Reconcile, APodThatRanForLongIsReplacedAtOnce) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "ExitCode")}}));
  cluster.Settle();
  for (int i = 0; i < 20; ++i) {
    cluster.Wait(minutes(5));
    cluster.Exit("j-worker-0", 137);
    cluster.Settle();
    EXPECT_EQ(cluster.created("j-worker-0"), i + 2);
  }
}

TEST(Reconcile, PodsThatFailTogetherAreReplacedTogether) {
  ClusterModel cluster(JobObject({{"Worker", Role(50, "ExitCode")}}));
  cluster.Settle();
  for (const std::string& name : cluster.pods()) cluster.Exit(name, 137);
  cluster.Pass();
  EXPECT_THAT(cluster.pods(), IsEmpty());
  EXPECT_EQ(cluster.status().retries, 50);
}

TEST(Reconcile, AFailedPodIsCountedOnceHoweverOftenItIsSeen) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "ExitCode")}}));
  cluster.graceful = true;
  cluster.Settle();
  cluster.Exit("j-worker-0", 137);
  for (int i = 0; i < 5; ++i) cluster.Pass();
  EXPECT_EQ(cluster.status().retries, 1);
  EXPECT_EQ(cluster.status().replacing.size(), 1u);
  cluster.Reap();
  cluster.Settle();
  EXPECT_EQ(cluster.status().retries, 1);
  EXPECT_THAT(cluster.status().replacing, IsEmpty());
  EXPECT_EQ(cluster.created("j-worker-0"), 2);
}

TEST(Reconcile, AJobThatFailsByItsLimitDoesNotSayThatItRestarts) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "ExitCode")}}, {{"backoffLimit", 0}}));
  cluster.Settle();
  cluster.Exit("j-worker-0", 137);
  const Plan plan = cluster.Pass();
  EXPECT_TRUE(plan.milestones.failed);
  EXPECT_FALSE(plan.milestones.restarted);
  EXPECT_THAT(Reasons(plan), Not(Contains("TFJobRestarting")));
}

// Ways in which a pod ends without a fault of its program.
const std::map<std::string, void (*)(ClusterModel&, const std::string&)>& Disruptions() {
  static const std::map<std::string, void (*)(ClusterModel&, const std::string&)> all = {
      {"deleted", [](ClusterModel& cluster, const std::string& pod) { cluster.DeletePod(pod); }},
      {"preempted", [](ClusterModel& cluster,
                       const std::string& pod) { cluster.Disrupt(pod, "PreemptionByScheduler"); }},
      {"drained", [](ClusterModel& cluster,
                     const std::string& pod) { cluster.Disrupt(pod, "EvictionByEvictionAPI"); }},
      {"evicted", [](ClusterModel& cluster,
                     const std::string& pod) { cluster.FailWithReason(pod, "Evicted"); }},
      {"node lost",
       [](ClusterModel& cluster, const std::string& pod) {
         cluster.Disrupt(pod, "DeletionByTaintManager");
         if (!cluster.has(pod)) return;
         cluster.pod(pod).fields()["status"]["conditions"].push_back(
             {{"type", "Ready"}, {"status", "False"}});
       }},
      {"gone", [](ClusterModel& cluster, const std::string& pod) { cluster.Remove(pod); }}};
  return all;
}

TEST(Reconcile, Q3_ADisruptedPodIsReplacedWhateverThePolicyAndDoesNotCount) {
  for (const auto& [how, disrupt] : Disruptions()) {
    for (const char* restart : {"Never", "OnFailure", "Always", "ExitCode"}) {
      for (const bool graceful : {false, true}) {
        ClusterModel cluster(JobObject({{"Chief", Role(1, restart)}, {"Worker", Role(2, restart)}},
                                       {{"backoffLimit", 0}}));
        cluster.graceful = graceful;
        cluster.Settle();
        cluster.RunAll();
        cluster.Settle();
        cluster.Wait(minutes(1));
        disrupt(cluster, "j-worker-1");
        cluster.Settle();
        if (how != "node lost") cluster.Reap();
        cluster.Wait(minutes(1));
        cluster.Settle();
        cluster.RunAll();
        cluster.Settle();
        const std::string what = how + " " + restart;
        EXPECT_EQ(cluster.created("j-worker-1"), 2) << what;
        EXPECT_EQ(cluster.created("j-worker-0"), 1) << what;
        EXPECT_EQ(cluster.status().retries, 0) << what;
        EXPECT_EQ(cluster.conditions(), "Created Running") << what;
      }
    }
  }
}

TEST(Reconcile, AReplacementIsExplainedByAnEventAboutThePod) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}));
  cluster.graceful = true;
  cluster.Settle();
  cluster.RunAll();
  cluster.Disrupt("j-worker-0", "PreemptionByScheduler");
  const JobEvent event = EventOf(cluster.Pass(), "ReplacingPod");
  EXPECT_EQ(event.subject, cluster.pod("j-worker-0").uid());
  EXPECT_EQ(event.message,
            "Replica j-worker-0 is replaced: preempted by the scheduler. This does not count as a "
            "retry.");
}

TEST(Reconcile, ANodeThatRejectsEachPodIsAskedEveryTenSeconds) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}));
  cluster.Settle();
  cluster.FailWithReason("j-worker-0", "OutOfcpu");
  const Plan plan = cluster.Pass();
  EXPECT_TRUE(cluster.has("j-worker-0"));
  EXPECT_EQ(plan.again_at, kNoon + seconds(10));
  cluster.Wait(seconds(10));
  cluster.Settle();
  EXPECT_EQ(cluster.created("j-worker-0"), 2);
}

TEST(Reconcile, Q14_ACompletedReplicaDoesNotRunAgain) {
  json job = JobObject({{"Worker", Role(3)}});
  job["spec"]["successPolicy"] = "AllWorkers";
  ClusterModel cluster(job);
  cluster.Settle();
  cluster.RunAll();
  cluster.Exit("j-worker-0", 0);
  cluster.Exit("j-worker-2", 0);
  cluster.Settle();
  cluster.Remove("j-worker-0");
  cluster.RemoveService("j-worker-0");
  cluster.DeletePod("j-worker-2");
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), ElementsAre("j-worker-1"));
  EXPECT_EQ(cluster.status().replicas.at(kWorker).succeeded, 2);
  EXPECT_EQ(FieldAt(cluster.job(), {"status", "elasticdl", "completed", "Worker"}), "0,2");
  cluster.Exit("j-worker-1", 0);
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Running- Succeeded");
  EXPECT_EQ(cluster.created("j-worker-0") + cluster.created("j-worker-2"), 2);
}

TEST(Reconcile, ASidecarThatNeverEndsDoesNotKeepAJobRunning) {
  ClusterModel cluster(JobObject({{"Worker", Role(1)}}, {{"cleanPodPolicy", "Running"}}));
  cluster.Settle();
  cluster.Exit("j-worker-0", 0);
  json& status = cluster.pod("j-worker-0").fields()["status"];
  status["phase"] = "Running";
  status["containerStatuses"].push_back(
      {{"name", "istio-proxy"}, {"state", {{"running", json::object()}}}});
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Succeeded");
  EXPECT_THAT(cluster.pods(), IsEmpty());
}

TEST(Reconcile, Q9_CreatedIsTheFirstConditionEvenIfAnotherOperatorLostIt) {
  json job = JobObject({{"Worker", Role(1)}});
  job["status"]["conditions"] = json::array({{{"type", "Running"}, {"status", "True"}}});
  ClusterModel cluster(job);
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Created Running");
  // The last condition of a job that has ended is its end.
  cluster.job()["status"]["conditions"] =
      json::array({{{"type", "Succeeded"}, {"status", "True"}}});
  cluster.Settle();
  EXPECT_EQ(cluster.conditions(), "Succeeded");
}

TEST(Reconcile, Q6_EachEndHasACompletionTime) {
  const auto end_with = [](const char* restart, int code, const json& policy, bool dynamic) {
    json job = JobObject({{"Worker", Role(1, restart)}}, policy);
    job["spec"]["enableDynamicWorker"] = dynamic;
    ClusterModel cluster(job);
    cluster.Settle();
    cluster.Exit("j-worker-0", code);
    cluster.Wait(seconds(5));
    cluster.Settle();
    EXPECT_TRUE(cluster.status().conditions.finished());
    return cluster.status().completion_time;
  };
  const auto end = kNoon + seconds(5);
  EXPECT_EQ(end_with("Never", 0, json::object(), false), end);
  EXPECT_EQ(end_with("Never", 1, json::object(), false), end);
  EXPECT_EQ(end_with("ExitCode", 1, json::object(), true), end);
  EXPECT_EQ(end_with("ExitCode", 137, {{"backoffLimit", 1}}, false), end);
  EXPECT_EQ(end_with("ExitCode", 137, {{"activeDeadlineSeconds", 5}}, false), end);
}

TEST(Reconcile, AFinishedJobStaysAsItIs) {
  ClusterModel cluster(JobObject({{"Worker", Role(2)}, {"PS", Role(1)}}));
  cluster.Settle();
  cluster.RunAll();
  cluster.Exit("j-worker-0", 0);
  cluster.Settle();
  EXPECT_EQ(cluster.status().replicas.at(kPs), (ReplicaCounts{.succeeded = 1}));
  const json before = cluster.job();
  cluster.Exit("j-worker-1", 1);
  cluster.Remove("j-ps-0");
  cluster.Wait(minutes(1));
  const Plan plan = cluster.Pass();
  EXPECT_EQ(cluster.job(), before);
  EXPECT_THAT(plan.actions, IsEmpty());
  EXPECT_THAT(plan.events, IsEmpty());
  EXPECT_EQ(plan.again_at, std::nullopt);
}

TEST(Reconcile, AnOrphanIsAdoptedAndAForeignPodIsNotTouched) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(2)}}));
  observed.pods = {PodOf(kWorker, 0, PodOutcome::kActive), PodOf(kWorker, 1, PodOutcome::kFailed)};
  observed.pods[0].owner = "";
  observed.pods[1].owner = "uid-of-another";
  const Plan plan = Reconcile(observed, {}, kNoon);
  EXPECT_THAT(Names(plan, Kind::kAdoptPod), ElementsAre("j-worker-0"));
  EXPECT_THAT(Names(plan, Kind::kDeletePod), IsEmpty());
  // The API server refuses it as long as the foreign pod has the name.
  EXPECT_THAT(Names(plan, Kind::kCreatePod), ElementsAre("j-worker-1"));
  EXPECT_TRUE(plan.status.conditions.IsTrue(kRunning));
}

TEST(Reconcile, APodWhoseSuspensionWasInterruptedIsReplaced) {
  ClusterModel cluster(JobObject({{"Worker", Role(1, "OnFailure")}}, {{"backoffLimit", 6}}));
  cluster.Settle();
  cluster.RunAll();
  cluster.Settle();
  cluster.SetRestarts("j-worker-0", 5);
  cluster.job()["spec"]["runPolicy"]["suspend"] = true;
  cluster.Pass(1);  // the operator dies after it has written the status
  ASSERT_TRUE(cluster.has("j-worker-0"));

  cluster.job()["spec"]["runPolicy"]["suspend"] = false;
  cluster.Settle();
  EXPECT_EQ(cluster.created("j-worker-0"), 2);
  cluster.RunAll();
  cluster.SetRestarts("j-worker-0", 1);
  cluster.Settle();

  EXPECT_TRUE(cluster.status().conditions.IsTrue(kFailed)) << "five and one restarts";
}

TEST(Reconcile, AWrongAnnotationIsReported) {
  json job = JobObject({{"Worker", Role(1)}});
  job["metadata"]["annotations"] = {{kDataShards, "yes"}};
  ClusterModel cluster(job);

  const JobEvent event = EventOf(cluster.Pass(), "InvalidAnnotation");

  EXPECT_EQ(event.type, kube::EventType::kWarning);
  EXPECT_THAT(event.message, HasSubstr("data-shards"));
  EXPECT_EQ(event.subject, kJobUid);
}

TEST(Reconcile, EventsAboutStatesHaveASubjectAndEventsAboutChangesHaveNone) {
  json job = JobObject({{"Worker", Role(2, "ExitCode")}});
  job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] = "Always";
  ClusterModel cluster(job);
  const Plan first = cluster.Pass();
  EXPECT_EQ(EventOf(first, "SetPodTemplateRestartPolicy").subject, kJobUid);
  cluster.Exit("j-worker-0", 137);
  cluster.pod("j-worker-1").fields()["status"] = {
      {"phase", "Pending"},
      {"containerStatuses",
       json::array({{{"name", "tensorflow"},
                     {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no"}}}}}}})}};
  const std::string failed = cluster.pod("j-worker-0").uid();
  const Plan second = cluster.Pass();
  EXPECT_EQ(EventOf(second, "ExitedWithCode").subject, failed);
  EXPECT_EQ(EventOf(second, "ErrImagePull").subject, cluster.pod("j-worker-1").uid());
  EXPECT_EQ(EventOf(second, "TFJobRestarting").subject, "");
}

TEST(Reconcile, VolcanoDelaysPodsUntilItAdmitsTheGroup) {
  ClusterModel cluster(JobObject({{"Worker", Role(2)}}));
  cluster.settings.pods.gang_scheduler = "volcano";
  cluster.Settle();
  EXPECT_THAT(cluster.pods(), IsEmpty());
  Observed admitted;
  admitted.job = ParsedJob(cluster.job());
  admitted.pod_group = MakePodGroup(admitted.job, {}, "volcano", {});
  admitted.pod_group->fields()["status"] = {{"phase", "Inqueue"}};
  const Plan plan = Reconcile(admitted, cluster.settings, kNoon);
  EXPECT_EQ(Names(plan, Kind::kCreatePod).size(), 2u);
  EXPECT_THAT(Names(plan, Kind::kUpdatePodGroup), IsEmpty());
}

TEST(Reconcile, Q14_AGangDoesNotWaitForReplicasThatHaveCompleted) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Chief", Role(1)}, {"Worker", Role(2)}}));
  observed.pods = {PodOf(kWorker, 1, PodOutcome::kSucceeded)};
  observed.pod_group = MakePodGroup(observed.job, {}, "plugin", {});
  Settings settings;
  settings.pods.gang_scheduler = "plugin";
  const Plan plan = Reconcile(observed, settings, kNoon);
  ASSERT_EQ(Names(plan, Kind::kUpdatePodGroup).size(), 1u);
  EXPECT_EQ(plan.actions.front().object.fields().at("spec"), json({{"minMember", 2}}));
}

TEST(Reconcile, AGangDoesNotWaitForWorkersThatFailedForGood) {
  json job = JobObject({{"PS", Role(1)}, {"Worker", Role(3)}});
  job["spec"]["enableDynamicWorker"] = true;
  Observed observed;
  observed.job = ParsedJob(job);
  observed.pods = {PodOf(kWorker, 0, PodOutcome::kActive), PodOf(kWorker, 1, PodOutcome::kActive),
                   PodOf(kWorker, 2, PodOutcome::kFailed)};
  observed.pod_group = MakePodGroup(observed.job, {}, "plugin", {});
  Settings settings;
  settings.pods.gang_scheduler = "plugin";
  const Plan plan = Reconcile(observed, settings, kNoon);
  ASSERT_EQ(Names(plan, Kind::kUpdatePodGroup).size(), 1u);
  EXPECT_EQ(plan.actions.front().object.fields().at("spec"), json({{"minMember", 3}}));
}

TEST(Reconcile, APodGroupThatIsNotOfThisJobOrIsBeingDeletedAdmitsNothing) {
  Observed observed;
  observed.job = ParsedJob(JobObject({{"Worker", Role(2)}}));
  Settings settings;
  settings.pods.gang_scheduler = "volcano";
  kube::Object earlier = MakePodGroup(observed.job, {}, "volcano", {});
  earlier.fields()["status"] = {{"phase", "Running"}};
  kube::Object deleting = earlier;
  earlier.metadata()["ownerReferences"][0]["uid"] = "uid-of-an-earlier-job";
  deleting.metadata()["deletionTimestamp"] = "2026-11-15T10:00:00Z";
  for (const kube::Object& group : {earlier, deleting}) {
    observed.pod_group = group;
    EXPECT_THAT(Reconcile(observed, settings, kNoon).actions, IsEmpty());
  }
}

TEST(Reconcile, ADeadlineDoesNotFailAJobWhoseChiefHasSucceeded) {
  json object =
      JobObject({{"Chief", Role(1)}, {"Evaluator", Role(1)}}, {{"activeDeadlineSeconds", 60}});
  object["metadata"]["annotations"][kWaitForEvaluator] = "true";
  ClusterModel cluster(object);
  cluster.Settle();
  cluster.RunAll();
  cluster.Exit("j-chief-0", 0);
  EXPECT_FALSE(cluster.Pass().status.conditions.finished());
  cluster.Wait(seconds(60));
  const Plan after = cluster.Pass();
  EXPECT_TRUE(after.status.conditions.IsTrue(kSucceeded));
  EXPECT_FALSE(after.status.conditions.IsTrue(kFailed));
}

TEST(Reconcile, AHugeJobIsCreatedInParts) {
  json job = JobObject({{"Worker", Role(100)}});
  job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"] = {
      {"a", std::string(1 << 20, 'a')}};
  ClusterModel cluster(job);
  const Plan plan = cluster.Pass();
  EXPECT_THAT(cluster.pods().size(), testing::AllOf(testing::Gt(10u), testing::Lt(65u)));
  EXPECT_EQ(plan.again_at, kNoon + seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.pods().size(), 100u);
}

Observed Rejected(const json& job) {
  Observed out;
  out.job = ParseRejected(kube::Object(job));
  return out;
}

TEST(Reconcile, AnInvalidJobFailsOnceAndSaysWhy) {
  json job = JobObject({{"PS", Role(1)}});
  const Plan plan = RejectInvalid(Rejected(job), "no worker", kNoon);
  EXPECT_EQ(plan.status.conditions.Find(kFailed)->reason, "TFJobFailedValidation");
  EXPECT_EQ(plan.status.conditions.Find(kFailed)->message, "TFJob ns/j is not valid: no worker");
  EXPECT_EQ(plan.status.completion_time, kNoon);
  EXPECT_THAT(Reasons(plan), ElementsAre("TFJobFailedValidation"));
  EXPECT_THAT(plan.actions, IsEmpty());
  job["status"] = StatusJson(plan.status, json());
  const Plan again = RejectInvalid(Rejected(job), "no worker", kNoon + seconds(5));
  EXPECT_EQ(again.status, plan.status);
  EXPECT_THAT(again.events, IsEmpty());
}

TEST(Reconcile, AnInvalidJobIsCleanedUpLikeAnyOther) {
  json job =
      JobObject({{"PS", Role(1)}}, {{"cleanPodPolicy", "All"}, {"ttlSecondsAfterFinished", 60}});
  Observed observed = Rejected(job);
  observed.pods = {PodOf(kPs, 0, PodOutcome::kActive)};
  observed.services = {ServiceOf(kPs, 0)};
  const Plan plan = RejectInvalid(observed, "no worker", kNoon);
  EXPECT_THAT(Names(plan, Kind::kDeletePod), ElementsAre("j-ps-0"));
  EXPECT_THAT(Names(plan, Kind::kDeleteService), ElementsAre("j-ps-0"));
  EXPECT_EQ(plan.again_at, kNoon + seconds(60));
  job["status"] = StatusJson(plan.status, json());
  const Plan expired = RejectInvalid(Rejected(job), "no worker", kNoon + seconds(60));
  EXPECT_THAT(Names(expired, Kind::kDeleteJob), ElementsAre("j"));
}

// Whether a job fails whose worker has a TF_CONFIG of so many bytes.
bool FailsWithConfigOf(size_t bytes, const json& job) {
  Observed observed;
  observed.job = ParsedJob(job);
  Settings settings;
  settings.pods.cluster_domain = "d";
  const size_t least = LongestClusterConfig(observed.job, settings.pods.cluster_domain);
  const size_t addresses = observed.job.dynamic_workers ? 1 : 2;
  settings.pods.cluster_domain += std::string((bytes - least) / addresses, 'd');
  return Reconcile(observed, settings, kNoon).milestones.failed;
}

TEST(Reconcile, AJobWhoseClusterIsTooLongForAVariableFailsBeforeItStarts) {
  ClusterModel cluster(JobObject({{"Worker", Role(6000)}}));
  cluster.settings.pods.cluster_domain = "cluster.local";
  cluster.Pass();
  EXPECT_THAT(cluster.pods(), IsEmpty());
  ASSERT_EQ(cluster.conditions(), "Created Failed");
  const JobStatus status = cluster.status();
  const std::string& message = status.conditions.Find(kFailed)->message;
  EXPECT_THAT(message, HasSubstr("TF_CONFIG"));
  EXPECT_THAT(message, HasSubstr("131072"));
  EXPECT_THAT(message, HasSubstr("enableDynamicWorker"));
}

TEST(Reconcile, TheLongestVariableOfAProcessIsAccepted) {
  json job = JobObject({{"Worker", Role(2)}});
  // With "TF_CONFIG=" and a zero at the end, 131,072 bytes.
  EXPECT_FALSE(FailsWithConfigOf(131'061, job));
  EXPECT_TRUE(FailsWithConfigOf(131'063, job));
  job["spec"]["enableDynamicWorker"] = true;
  EXPECT_FALSE(FailsWithConfigOf(131'061, job));
  EXPECT_TRUE(FailsWithConfigOf(131'062, job));
}

}  // namespace
}  // namespace edl::reconciler
