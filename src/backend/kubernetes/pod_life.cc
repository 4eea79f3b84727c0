#include "backend/kubernetes/pod_life.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "backend/exit_cause.h"

namespace edl::backend::kubernetes {
namespace {

using kube::ContainerExit;
using kube::ContainerState;
using kube::PodState;

constexpr int kSignalBase = 128;
constexpr int kMaxSignal = 64;

job::ExitCause Killed(std::string message, int signal) {
  return {.kind = job::ExitCause::Kind::kKilled, .signal = signal, .message = std::move(message)};
}

job::ExitCause Disrupted(const PodState& pod) {
  return Killed(kube::DescribeDisruption(pod.disruption()), SIGTERM);
}

job::ExitCause CauseOf(const ContainerExit& exit) {
  if (exit.reason == "OOMKilled") {
    return {.kind = job::ExitCause::Kind::kOutOfMemory,
            .exit_code = exit.exit_code,
            .signal = SIGKILL,
            .message = "out of memory: the container exceeded its limit"};
  }
  // The container runtime could not start the program.
  if (exit.reason == "StartError" || exit.reason == "ContainerCannotRun") {
    return {.kind = job::ExitCause::Kind::kNotLaunched,
            .exit_code = exit.exit_code,
            .message = "could not be started: " + exit.message};
  }
  // After a restart, a node only knows that its containers no longer exist.
  if (exit.reason == "Unknown" || exit.reason == "ContainerStatusUnknown") {
    return Killed("its node was restarted", 0);
  }
  const int signal = exit.exit_code - kSignalBase;
  const bool by_signal = signal > 0 && signal <= kMaxSignal;
  return by_signal ? CauseOfSignal(signal) : CauseOfExit(exit.exit_code);
}

// The cause for a pod that failed before its container ran, or without a container status: the node
// rejected or lost it, which is not a fault of the program.
job::ExitCause CauseWithoutContainer(const PodState& pod) {
  std::string message = pod.reason.empty() ? "its pod failed" : pod.reason;
  if (!pod.message.empty()) message += ": " + pod.message;
  return Killed(std::move(message), SIGKILL);
}

bool HasEnded(const PodState& pod, const ContainerState* container, Restart restart) {
  if (pod.terminal()) return true;
  return restart == Restart::kNever && container != nullptr && container->exit.has_value();
}

// The node lifecycle controller marks the pods of an unreachable node by changing only the status
// of their Ready condition. A kubelet that finds a pod unready (a sidecar, a readiness gate) sets a
// reason, and changes ContainersReady if containers are the cause.
bool IsNodeLost(const PodState& pod, const ContainerState* container) {
  const kube::PodCondition* ready = pod.condition("Ready");
  const kube::PodCondition* containers = pod.condition("ContainersReady");
  return pod.phase == kube::PodPhase::kRunning && ready != nullptr && ready->status != "True" &&
         ready->reason.empty() && (containers == nullptr || containers->status == "True") &&
         container != nullptr && container->running && container->ready;
}

std::string PendingReason(const PodState& pod, const ContainerState* container) {
  if (std::string why = pod.unschedulable(); !why.empty()) return why;
  if (container == nullptr || container->waiting_reason.empty()) return "";
  if (container->waiting_message.empty()) return container->waiting_reason;
  return fmt::format("{}: {}", container->waiting_reason, container->waiting_message);
}

}  // namespace

PodLife LifeOf(const PodState& pod, job::Role role, const std::string& name, Restart restart) {
  using Kind = job::ReplicaEvent::Kind;
  const ContainerState* container = pod.container(name);
  PodLife life;
  life.started = container != nullptr && (container->running || container->exit.has_value() ||
                                          container->last_exit.has_value());
  const bool disrupted = pod.deleting || !pod.disruption().empty();
  if (HasEnded(pod, container, restart)) {
    life.kind = Kind::kExited;
    const bool evicted = pod.reason == "Evicted";
    life.cause = disrupted && !evicted ? Disrupted(pod)
                 : evicted || container == nullptr || !container->exit.has_value()
                     ? CauseWithoutContainer(pod)
                     : CauseOf(*container->exit);
    return life;
  }
  if (pod.deleting && role == job::Role::kWorker) {
    life.kind = Kind::kExited;
    life.cause = Disrupted(pod);
    return life;
  }
  life.node_lost = IsNodeLost(pod, container);
  if (life.node_lost && pod.deleting) {
    life.kind = Kind::kExited;
    life.cause = Killed(fmt::format("its node {} is lost", pod.node), SIGKILL);
    return life;
  }
  if (pod.phase == kube::PodPhase::kRunning && life.started) {
    life.kind = Kind::kRunning;
    return life;
  }
  life.reason = PendingReason(pod, container);
  return life;
}

job::ExitCause CauseOfDeletion(const PodState& last, const std::string& name) {
  const ContainerState* container = last.container(name);
  const bool disrupted = last.deleting || !last.disruption().empty();
  if (!disrupted && container != nullptr && container->exit.has_value()) {
    return CauseOf(*container->exit);
  }
  return Disrupted(last);
}

}  // namespace edl::backend::kubernetes
