#include "backend/kubernetes/pod_life.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::backend::kubernetes {
namespace {

using Kind = job::ReplicaEvent::Kind;
using Cause = job::ExitCause::Kind;
using ::testing::HasSubstr;

constexpr const char* kContainer = "job-edljob-worker-0";

// The status of a pod in the format of the API server, with the given container state.
kube::PodState Pod(const std::string& phase, const std::string& container,
                   const std::string& conditions = "[]", bool deleting = false) {
  nlohmann::json pod = nlohmann::json::parse(fmt::format(
      R"({{"metadata": {{"name": "{0}"}}, "spec": {{"nodeName": "n2"}},
          "status": {{"phase": "{1}", "conditions": {3},
                      "containerStatuses": [{{"name": "{0}", {2}}}]}}}})",
      kContainer, phase, container, conditions));
  if (deleting) pod["metadata"]["deletionTimestamp"] = "2026-11-15T10:00:00Z";
  return kube::PodStateOf(kube::Object(std::move(pod)));
}

constexpr const char* kRunning = R"("ready": true, "state": {"running": {}})";
constexpr const char* kReady = R"([{"type": "Ready", "status": "True"}])";
constexpr const char* kPreempted =
    R"([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])";

std::string Ended(int code, const std::string& reason, const std::string& message = "") {
  return fmt::format(
      R"("ready": false, "state": {{"terminated": {{"exitCode": {}, "reason": "{}", "message": "{}"}}}})",
      code, reason, message);
}

PodLife Life(const kube::PodState& pod, job::Role role = job::Role::kWorker,
             Restart restart = Restart::kNever) {
  return LifeOf(pod, role, kContainer, restart);
}

TEST(PodLife, SaysWhyAPodWaits) {
  EXPECT_EQ(Life({}).kind, Kind::kPending);
  EXPECT_EQ(Life({}).reason, "");
  const PodLife unschedulable =
      Life(Pod("Pending", R"("state": {})",
               R"([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "message": "0/2 nodes are available: 2 Insufficient cpu."}])"));
  EXPECT_EQ(unschedulable.kind, Kind::kPending);
  EXPECT_EQ(unschedulable.reason, "0/2 nodes are available: 2 Insufficient cpu.");
  const PodLife no_image = Life(Pod(
      "Pending", R"("state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}})"));
  EXPECT_EQ(no_image.kind, Kind::kPending);
  EXPECT_EQ(no_image.reason, "ErrImagePull: not found");
  EXPECT_FALSE(no_image.started);
}

TEST(PodLife, ReportsARunningPod) {
  EXPECT_EQ(Life(Pod("Running", kRunning, kReady)).kind, Kind::kRunning);
  EXPECT_TRUE(Life(Pod("Running", kRunning, kReady)).started);
}

TEST(PodLife, TakesTheContainersEndForTheReplicas) {
  // The phase changes a second later, and with an injected container possibly never.
  for (const char* phase : {"Running", "Pending", "Failed"}) {
    const PodLife life = Life(Pod(phase, Ended(3, "Error")));
    EXPECT_EQ(life.kind, Kind::kExited) << phase;
    EXPECT_EQ(life.cause.kind, Cause::kFailed) << phase;
    EXPECT_EQ(life.cause.exit_code, 3) << phase;
    EXPECT_TRUE(life.started) << phase;
  }
}

TEST(PodLife, IgnoresContainersThatTheKubeletRestarts) {
  EXPECT_EQ(Life(Pod("Running", Ended(3, "Error")), job::Role::kWorker, Restart::kByKubelet).kind,
            Kind::kRunning);
}

TEST(PodLife, DistinguishesCauses) {
  struct Case {
    int code;
    const char* reason;
    Cause kind;
    int signal;
  };
  const Case cases[] = {
      {0, "Completed", Cause::kSucceeded, 0},
      {1, "Error", Cause::kFailed, 0},
      {137, "Error", Cause::kKilled, SIGKILL},
      {143, "Error", Cause::kKilled, SIGTERM},
      {139, "Error", Cause::kFailed, SIGSEGV},
      {137, "OOMKilled", Cause::kOutOfMemory, SIGKILL},
      {7, "OOMKilled", Cause::kOutOfMemory, SIGKILL},  // a child's end, and its parent's code
      {128, "StartError", Cause::kNotLaunched, 0},
      {255, "Unknown", Cause::kKilled, 0},
      {255, "Error", Cause::kFailed, 0},
  };
  for (const Case& wanted : cases) {
    const PodLife life = Life(Pod(wanted.code == 0 ? "Succeeded" : "Failed",
                                  Ended(wanted.code, wanted.reason, "what the runtime said")));
    EXPECT_EQ(life.kind, Kind::kExited);
    EXPECT_EQ(life.cause.kind, wanted.kind) << wanted.code << " " << wanted.reason;
    EXPECT_EQ(life.cause.signal, wanted.signal) << wanted.code << " " << wanted.reason;
  }
  EXPECT_THAT(Life(Pod("Failed", Ended(128, "StartError", "no such file"))).cause.message,
              HasSubstr("no such file"));
}

TEST(PodLife, NeverCallsADisruptedPodSucceeded) {
  const PodLife told_to_go = Life(Pod("Succeeded", Ended(0, "Completed"), "[]", true));
  EXPECT_EQ(told_to_go.cause.kind, Cause::kKilled);
  const PodLife preempted = Life(Pod("Succeeded", Ended(0, "Completed"), kPreempted));
  EXPECT_EQ(preempted.cause.kind, Cause::kKilled);
  EXPECT_EQ(preempted.cause.message, "preempted by the scheduler");
}

TEST(PodLife, ReportsAWorkerAsExitedWhenItsPodIsDeleted) {
  const PodLife worker = Life(Pod("Running", kRunning, kPreempted, true));
  EXPECT_EQ(worker.kind, Kind::kExited);
  EXPECT_EQ(worker.cause.message, "preempted by the scheduler");
  EXPECT_FALSE(worker.node_lost);
  for (const job::Role role : {job::Role::kPs, job::Role::kChief, job::Role::kEvaluator}) {
    EXPECT_EQ(Life(Pod("Running", kRunning, kReady, true), role).kind, Kind::kRunning);
  }
  // Not earlier: the scheduler marks its victim some time before, and may choose another.
  EXPECT_EQ(Life(Pod("Running", kRunning, kPreempted)).kind, Kind::kRunning);
}

TEST(PodLife, NoticesThatANodeIsLostAndLeavesTheReplicaAlone) {
  // The status that the node reported last, "ready", stays; only the condition changes.
  const char* unready = R"([{"type": "Ready", "status": "False"},
                            {"type": "ContainersReady", "status": "True"}])";
  for (const job::Role role : {job::Role::kWorker, job::Role::kPs, job::Role::kChief}) {
    const PodLife life = Life(Pod("Running", kRunning, unready), role);
    EXPECT_EQ(life.kind, Kind::kRunning);
    EXPECT_TRUE(life.node_lost);
  }
  // A replica whose deletion was requested too has exited.
  const PodLife gone = Life(Pod("Running", kRunning, unready, true), job::Role::kPs);
  EXPECT_EQ(gone.kind, Kind::kExited);
  EXPECT_EQ(gone.cause.message, "its node n2 is lost");
}

TEST(PodLife, DoesNotTakeAnUnreadyPodForALostNode) {
  for (const char* conditions : {
           // A sidecar whose readiness probe fails, or that has ended.
           R"([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
               {"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady"}])",
           R"([{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"},
               {"type": "ContainersReady", "status": "True"}])",
           // The node was lost after the kubelet had found the sidecar unready.
           R"([{"type": "Ready", "status": "False"},
               {"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady"}])",
       }) {
    for (const bool deleting : {false, true}) {
      const PodLife life = Life(Pod("Running", kRunning, conditions, deleting), job::Role::kPs);
      EXPECT_EQ(life.kind, Kind::kRunning) << conditions;
      EXPECT_FALSE(life.node_lost) << conditions;
    }
  }
  // The node itself reports that the container is not ready.
  EXPECT_FALSE(Life(Pod("Running", R"("ready": false, "state": {"running": {}})",
                        R"([{"type": "Ready", "status": "False"}])"))
                   .node_lost);
}

TEST(PodLife, CountsFailuresOfTheNodeAsKilled) {
  nlohmann::json pod = {{"status",
                         {{"phase", "Failed"},
                          {"reason", "Evicted"},
                          {"message", "The node was low on resource: memory."}}}};
  PodLife life = Life(kube::PodStateOf(kube::Object(pod)));
  EXPECT_EQ(life.cause.kind, Cause::kKilled);
  EXPECT_EQ(life.cause.message, "Evicted: The node was low on resource: memory.");
  pod["status"]["reason"] = "OutOfcpu";
  life = Life(kube::PodStateOf(kube::Object(pod)));
  EXPECT_EQ(life.cause.kind, Cause::kKilled);
}

TEST(PodLife, TakesADeletedPodForKilled) {
  EXPECT_EQ(CauseOfDeletion(Pod("Running", kRunning, kReady, true), kContainer).message,
            "its pod was deleted");
  EXPECT_EQ(CauseOfDeletion(Pod("Running", kRunning, kReady), kContainer).kind, Cause::kKilled);
  // Its exit was recorded in the pod, but not reported yet.
  EXPECT_EQ(CauseOfDeletion(Pod("Failed", Ended(3, "Error")), kContainer).kind, Cause::kFailed);
}

}  // namespace
}  // namespace edl::backend::kubernetes
