#include "kube/pod.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

PodState Read(const char* text) {
  const auto pod = Object::Parse(text);
  EXPECT_OK(pod);
  return PodStateOf(*pod);
}

// Recorded: a worker that the scheduler preempted and that exits 0 on SIGTERM.
TEST(Pod, SaysThatItWasPreemptedAlsoWhenItSucceeded) {
  const PodState pod = Read(R"({
    "metadata": {"deletionTimestamp": "2026-11-15T10:00:00Z"},
    "spec": {"nodeName": "n2"},
    "status": {
      "phase": "Succeeded", "podIP": "10.0.0.7",
      "conditions": [
        {"type": "Ready", "status": "False", "reason": "PodCompleted"},
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
         "message": "default-scheduler: preempting to accommodate a higher priority pod"}],
      "containerStatuses": [
        {"name": "worker", "image": "i", "restartCount": 0, "ready": false,
         "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}})");

  EXPECT_EQ(pod.phase, PodPhase::kSucceeded);
  EXPECT_TRUE(pod.terminal());
  EXPECT_TRUE(pod.deleting);
  EXPECT_EQ(pod.deletion_time, WallTime(std::chrono::seconds(1794736800)));
  EXPECT_EQ(pod.node, "n2");
  EXPECT_EQ(pod.ip, "10.0.0.7");
  EXPECT_EQ(pod.disruption(), "PreemptionByScheduler");
  EXPECT_FALSE(pod.ready());
  ASSERT_NE(pod.container("worker"), nullptr);
  EXPECT_EQ(pod.container("worker")->exit->exit_code, 0);
  EXPECT_EQ(pod.container("sidecar"), nullptr);
}

TEST(Pod, SaysHowAContainerEndedAndWhyItWaits) {
  const PodState pod = Read(R"({
    "status": {
      "phase": "Running",
      "conditions": [{"type": "Ready", "status": "True"}],
      "initContainerStatuses": [{"name": "init", "state": {"running": {}}}],
      "containerStatuses": [
        {"name": "ps", "restartCount": 2, "ready": true, "state": {"running": {"startedAt": "x"}},
         "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "m"}}},
        {"name": "worker",
         "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}})");

  EXPECT_TRUE(pod.ready());
  EXPECT_FALSE(pod.terminal());
  EXPECT_EQ(pod.disruption(), "");
  EXPECT_TRUE(pod.init_containers.at(0).running);
  const ContainerState& ps = pod.containers.at(0);
  EXPECT_TRUE(ps.running && ps.ready);
  EXPECT_EQ(ps.restarts, 2);
  EXPECT_EQ(ps.exit, std::nullopt);
  EXPECT_EQ(ps.last_exit, (ContainerExit{137, "OOMKilled", "m"}));
  const ContainerState& worker = pod.containers.at(1);
  EXPECT_EQ(worker.waiting_reason, "ImagePullBackOff");
  EXPECT_EQ(worker.waiting_message, "no such image");
  EXPECT_FALSE(worker.running);
}

TEST(Pod, SaysThatNoNodeFitsIt) {
  const PodState pod = Read(R"({"status": {"phase": "Pending", "conditions": [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
     "message": "0/2 nodes are available: 2 Insufficient cpu."}]}})");
  EXPECT_EQ(pod.phase, PodPhase::kPending);
  EXPECT_EQ(pod.unschedulable(), "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_EQ(Read(R"({"status": {"conditions": [
    {"type": "PodScheduled", "status": "True"}]}})")
                .unschedulable(),
            "");
}

TEST(Pod, ReadsMalformedFieldsAsEmpty) {
  for (const char* text :
       {"{}", R"({"status": 7, "spec": []})", R"({"status": {"phase": "Dancing"}})",
        R"({"status": {"conditions": {}, "containerStatuses": "none", "phase": 1}})"}) {
    const PodState pod = Read(text);
    EXPECT_EQ(pod.phase, PodPhase::kUnknown) << text;
    EXPECT_TRUE(pod.containers.empty() && pod.conditions.empty() && pod.node.empty()) << text;
    EXPECT_FALSE(pod.deleting || pod.ready()) << text;
  }
  const PodState odd = Read(R"({"status": {
    "conditions": [7, {"type": "DisruptionTarget", "status": "True"}],
    "containerStatuses": [8, {"name": [], "state": {"terminated": {"exitCode": "3"}}}]}})");
  EXPECT_EQ(odd.disruption(), "DisruptionTarget");
  EXPECT_EQ(odd.containers.at(1).exit->exit_code, 0);
}

}  // namespace
}  // namespace edl::kube
