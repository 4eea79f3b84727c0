#include "reconciler/replica_pod.h"

#include "reconciler/testing/cluster_model.h"
#include "reconciler/testing/wrong_types.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Running(const char* name) {
  return {{"name", name}, {"state", {{"running", json::object()}}}};
}

json Ended(const char* name, int code, const char* finished_at = "2026-11-15T10:00:00Z") {
  return {
      {"name", name},
      {"state",
       {{"terminated", {{"exitCode", code}, {"reason", "Error"}, {"finishedAt", finished_at}}}}}};
}

// A pod of worker 0 with the given phase and states of containers.
json Pod(const char* phase, const json& containers, const char* restart = "Never") {
  json pod =
      MakePod(ParsedJob(JobObject({{"Worker", Role(1, restart)}})), ReplicaType::kWorker, 0, {})
          .fields();
  pod["metadata"]["uid"] = "uid-of-pod";
  pod["spec"]["nodeName"] = "n1";
  pod["status"] = {{"phase", phase}, {"containerStatuses", containers}};
  return pod;
}

json Deleted(json pod) {
  pod["metadata"]["deletionTimestamp"] = "2026-11-15T10:00:30Z";
  pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  return pod;
}

json Disrupted(json pod, const char* reason) {
  pod["status"]["conditions"] =
      json::array({{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}}});
  return pod;
}

json WithReason(json pod, const char* reason) {
  pod["status"]["reason"] = reason;
  return pod;
}

ReplicaPod Read(const json& pod) { return ReadPod(kube::Object(pod)).value(); }
PodOutcome OutcomeOf(const json& pod) { return Read(pod).outcome; }

TEST(ReplicaPod, APodIsReadWithItsOwnerAndItsSlot) {
  const ReplicaPod pod = Read(Pod("Running", json::array({Running("tensorflow")})));
  EXPECT_EQ(pod.name, "j-worker-0");
  EXPECT_EQ(pod.uid, "uid-of-pod");
  EXPECT_EQ(pod.job, "j");
  EXPECT_EQ(pod.owner, kJobUid);
  EXPECT_EQ(pod.slot, (Slot{ReplicaType::kWorker, 0}));
  EXPECT_EQ(ReadPod(kube::Object()), std::nullopt);
}

TEST(ReplicaPod, PhasesAreOutcomes) {
  EXPECT_EQ(OutcomeOf(Pod("Pending", json::array())), PodOutcome::kPending);
  EXPECT_EQ(OutcomeOf(Pod("Unknown", json::array())), PodOutcome::kPending);
  EXPECT_EQ(OutcomeOf(Pod("Running", json::array())), PodOutcome::kActive);
  EXPECT_EQ(OutcomeOf(Pod("Succeeded", json::array())), PodOutcome::kSucceeded);
  EXPECT_EQ(OutcomeOf(Pod("Failed", json::array())), PodOutcome::kFailed);
}

TEST(ReplicaPod, AFailedContainerGivesCodeAndReason) {
  const ReplicaPod pod = Read(Pod("Failed", json::array({Ended("tensorflow", 3)})));
  EXPECT_EQ(pod.outcome, PodOutcome::kFailed);
  EXPECT_EQ(pod.exit_code, 3);
  EXPECT_EQ(pod.reason, "exit code 3 (Error)");
  EXPECT_TRUE(pod.terminal);
}

TEST(ReplicaPod, TheTrainingContainerDecidesAndNotTheSidecar) {
  const json done = Ended("tensorflow", 0);
  const json failed = Ended("tensorflow", 1);
  const json proxy = Running("proxy");
  EXPECT_EQ(OutcomeOf(Pod("Running", {done, proxy})), PodOutcome::kSucceeded);
  EXPECT_EQ(OutcomeOf(Pod("Running", {failed, proxy})), PodOutcome::kFailed);
  EXPECT_EQ(OutcomeOf(Pod("Running", {done, proxy}, "OnFailure")), PodOutcome::kSucceeded);
  EXPECT_EQ(OutcomeOf(Pod("Failed", {done, Ended("proxy", 1)})), PodOutcome::kSucceeded);
  EXPECT_EQ(OutcomeOf(Pod("Running", {Running("tensorflow"), Ended("proxy", 1)})),
            PodOutcome::kActive);
  EXPECT_FALSE(Read(Pod("Running", {done, proxy})).terminal);
}

TEST(ReplicaPod, APodWhoseContainersHaveAllEndedDoesNotRunWhateverItsPhase) {
  const json done = Ended("tensorflow", 0);
  const json failed_proxy = Ended("proxy", 1);
  EXPECT_TRUE(Read(Pod("Running", json::array({done}))).terminal);
  EXPECT_TRUE(Read(Pod("Pending", json::array({done}))).terminal);
  EXPECT_TRUE(Read(Pod("Running", {done, failed_proxy})).terminal);
  EXPECT_FALSE(Read(Pod("Running", {done, failed_proxy}, "OnFailure")).terminal);
  EXPECT_FALSE(Read(Pod("Running", json::array({done}), "Always")).terminal);
  EXPECT_FALSE(Read(Pod("Pending", json::array())).terminal);
  EXPECT_TRUE(Read(Pod("Failed", json::array())).terminal);
}

TEST(ReplicaPod, AContainerThatIsRestartedInPlaceHasNotEnded) {
  const json failed = json::array({Ended("tensorflow", 1)});
  EXPECT_EQ(OutcomeOf(Pod("Running", failed, "OnFailure")), PodOutcome::kActive);
  EXPECT_EQ(OutcomeOf(Pod("Running", failed, "Always")), PodOutcome::kActive);
  EXPECT_EQ(OutcomeOf(Pod("Running", json::array({Ended("tensorflow", 0)}), "Always")),
            PodOutcome::kActive);
}

TEST(ReplicaPod, Q3_APodThatIsDeletedHasNotFailed) {
  const json running = Pod("Running", json::array({Running("tensorflow")}));
  EXPECT_EQ(OutcomeOf(Deleted(running)), PodOutcome::kTerminating);
  EXPECT_EQ(Read(Deleted(running)).reason, "its pod was deleted");
  const json failed = Pod("Failed", json::array({Ended("tensorflow", 143)}));
  EXPECT_EQ(OutcomeOf(Deleted(failed)), PodOutcome::kTerminating);
}

TEST(ReplicaPod, K45_ClockSkewAnExitOfAPodThatIsDeletedIsNoSuccess) {
  // The clock of the node may be behind, so the exit seems to have been before the deletion.
  for (const char* time : {"2026-11-15T09:59:59Z", "2026-11-15T10:00:05Z"}) {
    const json ended = json::array({Ended("tensorflow", 0, time)});
    EXPECT_EQ(OutcomeOf(Deleted(Pod("Succeeded", ended))), PodOutcome::kTerminating) << time;
  }
}

TEST(ReplicaPod, NodesAndSchedulersDisruptPods) {
  const json killed = json::array({Ended("tensorflow", 137)});
  for (const char* reason : {"PreemptionByScheduler", "EvictionByEvictionAPI",
                             "DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet"}) {
    EXPECT_EQ(OutcomeOf(Disrupted(Pod("Failed", killed), reason)), PodOutcome::kDisrupted)
        << reason;
  }
  for (const char* reason : {"Evicted", "NodeLost", "NodeShutdown", "Terminated", "OutOfcpu",
                             "OutOfnvidia.com/gpu", "NodeAffinity", "UnexpectedAdmissionError"}) {
    EXPECT_EQ(OutcomeOf(WithReason(Pod("Failed", json::array()), reason)), PodOutcome::kDisrupted)
        << reason;
  }
  EXPECT_EQ(OutcomeOf(WithReason(Pod("Failed", killed), "DeadlineExceeded")), PodOutcome::kFailed);
}

TEST(ReplicaPod, AProgramThatEndsWithZeroWhenEvictedHasNotSucceeded) {
  const json ended = json::array({Ended("tensorflow", 0)});
  EXPECT_EQ(OutcomeOf(Disrupted(Pod("Succeeded", ended), "PreemptionByScheduler")),
            PodOutcome::kDisrupted);
  EXPECT_EQ(OutcomeOf(WithReason(Pod("Failed", ended), "Evicted")), PodOutcome::kDisrupted);
  EXPECT_EQ(OutcomeOf(WithReason(Pod("Failed", ended), "DeadlineExceeded")), PodOutcome::kFailed);
}

TEST(ReplicaPod, ARebootOfTheNodeIsADisruption) {
  json ended = Ended("tensorflow", 137);
  ended["state"]["terminated"]["reason"] = "ContainerStatusUnknown";
  EXPECT_EQ(OutcomeOf(Pod("Failed", json::array({ended}))), PodOutcome::kDisrupted);
}

TEST(ReplicaPod, ATerminatingPodOnALostNodeIsMarked) {
  json pod = Deleted(Pod("Running", json::array({Running("tensorflow")})));
  EXPECT_EQ(Read(pod).node_loss, NodeLoss::kNone);
  pod["status"]["conditions"] = json::array({{{"type", "Ready"}, {"status", "False"}}});
  EXPECT_EQ(Read(pod).node_loss, NodeLoss::kCertain);
  pod["status"]["conditions"][0]["reason"] = "ContainersNotReady";
  EXPECT_EQ(Read(pod).node_loss, NodeLoss::kNone);
}

TEST(ReplicaPod, APodThatWasNotReadyBeforeItsNodeWasLostIsMarkedByTheTaint) {
  const json waiting = json::array(
      {{{"name", "tensorflow"}, {"state", {{"waiting", {{"reason", "ContainerCreating"}}}}}}});
  json pod = Disrupted(Deleted(Pod("Pending", waiting)), "DeletionByTaintManager");
  EXPECT_EQ(Read(pod).node_loss, NodeLoss::kPossible);
  pod["status"]["conditions"].push_back(
      {{"type", "Ready"}, {"status", "False"}, {"reason", "ContainersNotReady"}});
  EXPECT_EQ(Read(pod).node_loss, NodeLoss::kPossible);
  pod["status"]["conditions"][1]["status"] = "True";
  EXPECT_EQ(Read(pod).node_loss, NodeLoss::kNone);
  EXPECT_EQ(Read(Disrupted(Deleted(Pod("Pending", waiting)), "EvictionByEvictionAPI")).node_loss,
            NodeLoss::kNone);
}

TEST(ReplicaPod, AnEvictionForALimitOfThePodIsItsOwnFailure) {
  json pod = WithReason(Pod("Failed", json::array({Ended("tensorflow", 0)})), "Evicted");
  for (const char* message :
       {R"(Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". )",
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
        R"(Container tensorflow exceeded its local ephemeral storage limit "1Gi". )"}) {
    pod["status"]["message"] = message;
    const ReplicaPod read = Read(pod);
    EXPECT_EQ(read.outcome, PodOutcome::kFailed);
    EXPECT_EQ(read.exit_code, std::nullopt);
    EXPECT_THAT(read.reason, HasSubstr(message));
  }
  pod["status"]["message"] =
      "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container "
      "tensorflow was using 2Gi, request is 1Gi, has larger consumption of memory. ";
  EXPECT_EQ(OutcomeOf(pod), PodOutcome::kDisrupted);
}

TEST(ReplicaPod, ARejectionByTheNodeIsADisruptionWhateverItsReason) {
  for (const char* reason : {"TopologyAffinityError", "NodePorts", "OutOfcpu", "SomethingNew"}) {
    EXPECT_EQ(OutcomeOf(WithReason(Pod("Failed", json::array()), reason)), PodOutcome::kDisrupted);
  }
  EXPECT_EQ(OutcomeOf(WithReason(Pod("Failed", json::array()), "DeadlineExceeded")),
            PodOutcome::kFailed);
}

TEST(ReplicaPod, TheReasonOfThePodComesBeforeTheExitOfItsContainer) {
  json pod = WithReason(Pod("Failed", json::array({Ended("tensorflow", 143)})), "DeadlineExceeded");
  pod["status"]["message"] = "Pod was active on the node longer than the specified deadline";
  EXPECT_EQ(Read(pod).reason,
            "DeadlineExceeded: Pod was active on the node longer than the specified deadline; exit "
            "code 143 (Error)");
}

TEST(ReplicaPod, TroubleOfAPodThatHasNotEndedIsDescribed) {
  json waiting = {{"name", "tensorflow"},
                  {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such"}}}}}};
  const ReplicaPod pending = Read(Pod("Pending", json::array({waiting})));
  EXPECT_EQ(pending.problem_reason, "ErrImagePull");
  EXPECT_THAT(pending.reason, HasSubstr("j-worker-0 container tensorflow waiting: ErrImagePull"));
  json unschedulable = Pod("Pending", json::array());
  unschedulable["status"]["conditions"] = json::array({{{"type", "PodScheduled"},
                                                        {"status", "False"},
                                                        {"reason", "Unschedulable"},
                                                        {"message", "no node"}}});
  EXPECT_EQ(Read(unschedulable).problem_reason, "Unschedulable");
  EXPECT_EQ(Read(Pod("Running", json::array({Running("tensorflow")}))).problem_reason, "");
}

TEST(ReplicaPod, AnInitContainerThatFailedIsTheReason) {
  json pod = Pod("Failed", json::array());
  pod["status"]["initContainerStatuses"] = json::array({Ended("prepare", 3)});
  const ReplicaPod read = Read(pod);
  EXPECT_EQ(read.outcome, PodOutcome::kFailed);
  EXPECT_EQ(read.reason, "init container prepare: exit code 3 (Error)");
  EXPECT_EQ(LogOf(read), (LogSource{.pod = "j-worker-0", .container = "prepare"}));
}

TEST(ReplicaPod, AnInitContainerThatWaitsIsTrouble) {
  json pod = Pod("Pending", json::array());
  pod["status"]["initContainerStatuses"] = json::array(
      {{{"name", "prepare"},
        {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}}}});
  EXPECT_EQ(Read(pod).problem_reason, "ErrImagePull");
  EXPECT_THAT(Read(pod).reason, HasSubstr("container prepare waiting: ErrImagePull"));
}

TEST(ReplicaPod, TheLastExitOfARestartedContainerIsKept) {
  json container = Running("tensorflow");
  container["restartCount"] = 2;
  container["lastState"] = {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}};
  json pod = Pod("Running", json::array({container}), "OnFailure");
  EXPECT_EQ(Read(pod).last_exit, "exit code 137 (OOMKilled)");
  EXPECT_EQ(LogOf(Read(pod)),
            (LogSource{.pod = "j-worker-0", .container = "tensorflow", .previous = true}));
  pod["status"]["containerStatuses"][0]["state"] = {
      {"waiting", {{"reason", "CrashLoopBackOff"}, {"message", "back-off"}}}};
  EXPECT_FALSE(LogOf(Read(pod)).previous);
}

TEST(ReplicaPod, TheLastExitOfAnotherContainerNamesIt) {
  json sidecar = Running("proxy");
  sidecar["restartCount"] = 1;
  sidecar["lastState"] = {{"terminated", {{"exitCode", 1}, {"reason", "Error"}}}};
  const json pod = Pod("Running", json::array({Running("tensorflow"), sidecar}), "OnFailure");
  EXPECT_EQ(Read(pod).last_exit, "container proxy: exit code 1 (Error)");
  EXPECT_EQ(LogOf(Read(pod)).container, "proxy");
}

TEST(ReplicaPod, RestartsOfAllContainersAreAdded) {
  json pod = Pod("Running", json::array({Running("tensorflow"), Running("proxy")}));
  pod["status"]["containerStatuses"][0]["restartCount"] = 2;
  pod["status"]["containerStatuses"][1]["restartCount"] = INT64_MAX;
  pod["status"]["initContainerStatuses"] = json::array({{{"name", "i"}, {"restartCount", 1}}});
  EXPECT_EQ(Read(pod).restarts, 1'000'003);
}

TEST(ReplicaPod, WrongTypesAnywhereReadAsEmpty) {
  json pod = Disrupted(Deleted(Pod("Failed", json::array({Ended("tensorflow", 1)}))), "x");
  const int tried = ForEachWrongType(pod, [&] { ReadPod(kube::Object(pod)); });
  EXPECT_GT(tried, 200);
}

TEST(ReplicaPod, AControllerWithTheNameOfTheLabelIsThisJobOrAnEarlierOne) {
  json pod = Pod("Running", json::array({Running("tensorflow")}));
  EXPECT_TRUE(Read(pod).owner_is_job);
  pod["metadata"]["ownerReferences"][0]["uid"] = "earlier";
  EXPECT_TRUE(Read(pod).owner_is_job);
  pod["metadata"]["ownerReferences"][0]["name"] = "other";
  EXPECT_FALSE(Read(pod).owner_is_job);
  pod["metadata"]["ownerReferences"][0]["name"] = "j";
  pod["metadata"]["ownerReferences"][0]["kind"] = "PyTorchJob";
  EXPECT_FALSE(Read(pod).owner_is_job);
}

// The pod, whose container that trains has fields of its own.
json WithContainer(json pod, const json& fields) {
  pod["spec"]["containers"][0].update(fields);
  return pod;
}

TEST(ReplicaPod, AnExitUnderRulesOfTheContainerIsFinalOnlyWhenThePodHasEnded) {
  const json rules = {{"restartPolicy", "Never"},
                      {"restartPolicyRules",
                       json::array({{{"action", "Restart"},
                                     {"exitCodes", {{"operator", "In"}, {"values", {42}}}}}})}};
  const json exited = json::array({Ended("tensorflow", 42)});
  EXPECT_EQ(OutcomeOf(Pod("Running", exited)), PodOutcome::kFailed);
  const ReplicaPod runs = Read(WithContainer(Pod("Running", exited), rules));
  EXPECT_EQ(runs.outcome, PodOutcome::kActive);
  EXPECT_FALSE(runs.terminal);
  EXPECT_EQ(OutcomeOf(WithContainer(Pod("Failed", exited), rules)), PodOutcome::kFailed);
}

TEST(ReplicaPod, ThePolicyOfAContainerReplacesThatOfItsPod) {
  const json failed = json::array({Ended("tensorflow", 1)});
  const json always = {{"restartPolicy", "Always"}};
  EXPECT_EQ(OutcomeOf(WithContainer(Pod("Running", failed), always)), PodOutcome::kActive);
  const json never = {{"restartPolicy", "Never"}};
  EXPECT_EQ(OutcomeOf(Pod("Running", failed, "Always")), PodOutcome::kActive);
  EXPECT_EQ(OutcomeOf(WithContainer(Pod("Running", failed, "Always"), never)), PodOutcome::kFailed);
}

}  // namespace
}  // namespace edl::reconciler
