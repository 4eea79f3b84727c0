#include "reconciler/replica_pod.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "reconciler/tfjob.h"
#include <fmt/format.h>

#include "base/json.h"
#include "kube/text.h"

namespace edl::reconciler {
namespace {

using kube::ContainerState;
using kube::PodPhase;
using kube::PodState;

// The most restarts of a container. Sums over all containers must not overflow.
constexpr int64_t kMostRestarts = 1'000'000;
// In seconds. A longer one could overflow when it is subtracted from a time.
constexpr int64_t kLongestGrace = int64_t{365} * 24 * 3600;

// Reasons of a failed pod for which its node is responsible, not its program.
bool IsNodeReason(const std::string& reason) {
  constexpr std::array<std::string_view, 8> kReasons = {
      "Evicted",    "Preempting", "Shutdown",     "NodeShutdown",
      "Terminated", "NodeLost",   "NodeAffinity", "UnexpectedAdmissionError"};
  return reason.starts_with("OutOf") ||
         std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

// Whether the kubelet has evicted the pod because it exceeded a limit of its own template. For that
// the program is responsible: it would exceed the limit again. Evictions for pressure on the node
// have another message and mostly the condition DisruptionTarget.
bool ExceededItsLimit(const PodState& state) {
  return state.reason == "Evicted" && state.disruption().empty() &&
         state.message.find(" limit") != std::string::npos;
}

// Whether the kubelet has rejected the pod before it started a container.
bool IsRejected(const PodState& state) {
  return state.phase == PodPhase::kFailed && !state.reason.empty() &&
         state.reason != "DeadlineExceeded" && state.containers.empty() &&
         state.init_containers.empty();
}

// After its node was rebooted, a container that was running has one of these reasons.
bool IsRebooted(const ContainerState* container) {
  return container != nullptr && container->exit &&
         (container->exit->reason == "Unknown" ||
          container->exit->reason == "ContainerStatusUnknown");
}

// Whether the kubelet starts the container again after it exited with this code. Rules of a
// container (KEP-5307) are not evaluated: with them, the phase of the pod tells.
bool RestartsInPlace(const kube::Object& pod, const std::string& container, int exit_code) {
  std::string policy = TextIn(FieldAt(pod.fields(), {"spec"}), "restartPolicy");
  for (const nlohmann::json& each : ListAt(pod.fields(), {"spec", "containers"})) {
    if (TextIn(each, "name") != container) continue;
    if (!ListAt(each, {"restartPolicyRules"}).empty()) return true;
    if (const std::string own = TextIn(each, "restartPolicy"); !own.empty()) policy = own;
  }
  if (policy == "Never") return false;
  return policy != "OnFailure" || exit_code != 0;
}

// The node lifecycle controller sets Ready to False without a reason on pods of a lost node. It
// does not do so if Ready was False before. Then the deletion by the taint of the node is the only
// sign, but nodes that are reachable can have taints, too.
NodeLoss NodeLossOf(const PodState& state) {
  if (state.terminal() || state.node.empty()) return NodeLoss::kNone;
  const kube::PodCondition* ready = state.condition("Ready");
  if (ready != nullptr && ready->status == "True") return NodeLoss::kNone;
  if (ready != nullptr && ready->reason.empty()) return NodeLoss::kCertain;
  const bool by_taint = state.deleting && state.disruption() == "DeletionByTaintManager";
  return by_taint ? NodeLoss::kPossible : NodeLoss::kNone;
}

std::string DescribeExit(const kube::ContainerExit& exit) {
  std::string text = fmt::format("exit code {}", exit.exit_code);
  if (!exit.reason.empty()) text += fmt::format(" ({})", exit.reason);
  if (!exit.message.empty()) text += ": " + exit.message;
  return text;
}

std::string DescribeReason(const PodState& state) {
  return state.message.empty() ? state.reason : fmt::format("{}: {}", state.reason, state.message);
}

// An init container that failed, so that the others were not started. Returns null if none did.
const ContainerState* FailedInitContainer(const PodState& state) {
  const auto failed =
      std::find_if(state.init_containers.begin(), state.init_containers.end(),
                   [](const auto& each) { return each.exit && each.exit->exit_code != 0; });
  return failed == state.init_containers.end() ? nullptr : &*failed;
}

// Describes why a pod failed. `container` is the one that trains; null: it has no status.
void ReadFailure(const PodState& state, const ContainerState* container, ReplicaPod& out) {
  const bool exited = container != nullptr && container->exit;
  if (exited) {
    // Some exits are a consequence: the kubelet ended the pod, for the reason that the pod has.
    out.reason = state.reason.empty()
                     ? DescribeExit(*container->exit)
                     : fmt::format("{}; {}", DescribeReason(state), DescribeExit(*container->exit));
    out.log_container = container->name;
  } else if (const ContainerState* init = FailedInitContainer(state)) {
    out.reason = fmt::format("init container {}: {}", init->name, DescribeExit(*init->exit));
    out.log_container = init->name;
  } else if (!state.reason.empty()) {
    out.reason = DescribeReason(state);
  } else {
    out.reason = "the pod failed";
  }
}

// Describes the last restart in place. The container that trains is the most interesting one.
void ReadRestart(const PodState& state, const ContainerState* container, ReplicaPod& out) {
  const auto read = [&](const ContainerState& each) {
    if (each.restarts == 0 || !each.last_exit || !out.last_exit.empty()) return;
    out.last_exit = DescribeExit(*each.last_exit);
    if (&each != container)
      out.last_exit = fmt::format("container {}: {}", each.name, out.last_exit);
    // A container that waits for its restart has no newer log.
    if (out.log_container.empty()) {
      out.log_container = each.name;
      out.log_previous = each.running || each.exit.has_value();
    }
  };
  if (container != nullptr) read(*container);
  for (const ContainerState& each : state.init_containers) read(each);
  for (const ContainerState& each : state.containers) read(each);
}

// Describes what is wrong with a pod that has not ended.
void ReadProblem(const PodState& state, ReplicaPod& out) {
  for (const auto* list : {&state.init_containers, &state.containers}) {
    for (const ContainerState& container : *list) {
      if (!container.waiting_message.empty()) {
        out.problem_reason = container.waiting_reason;
        out.reason =
            fmt::format("Error pod {} container {} waiting: {}: {}", out.name, container.name,
                        container.waiting_reason, container.waiting_message);
        return;
      }
      if (container.exit && container.exit->exit_code != 0) {
        out.problem_reason = container.exit->reason;
        out.reason = fmt::format("Error pod {} container {} exited with code {}: {}", out.name,
                                 container.name, container.exit->exit_code, container.exit->reason);
        return;
      }
    }
  }
  if (const std::string why = state.unschedulable(); !why.empty()) {
    out.problem_reason = "Unschedulable";
    out.reason = fmt::format("Error pod {} condition: Unschedulable: {}", out.name, why);
  }
}

// Whether nothing runs in the pod any more. Its containers have ended a moment before its phase
// says so, and a pod must not be deleted as a running one in that moment.
bool IsTerminal(const kube::Object& pod, const PodState& state) {
  if (state.terminal()) return true;
  return !state.containers.empty() &&
         std::all_of(state.containers.begin(), state.containers.end(),
                     [&](const ContainerState& each) {
                       return each.exit && !RestartsInPlace(pod, each.name, each.exit->exit_code);
                     });
}

PodOutcome OutcomeOf(const kube::Object& pod, const PodState& state,
                     const ContainerState* container) {
  // A program that exits with 0 because it was told to terminate has not done its work, and the
  // times of the exit and of the deletion are by different clocks.
  if (state.deleting) return PodOutcome::kTerminating;
  const bool exited =
      container != nullptr && container->exit &&
      (state.terminal() || !RestartsInPlace(pod, container->name, container->exit->exit_code));
  // A pod whose phase is Failed without a reason has a container that failed, maybe another one.
  const bool ok = exited ? container->exit->exit_code == 0 &&
                               (state.phase != PodPhase::kFailed || state.reason.empty())
                         : state.phase == PodPhase::kSucceeded;
  const bool disrupted = !state.disruption().empty();
  if (exited || state.terminal()) {
    if (ExceededItsLimit(state)) return PodOutcome::kFailed;
    if (disrupted || IsRebooted(container)) return PodOutcome::kDisrupted;
    if (ok) return PodOutcome::kSucceeded;
    return IsNodeReason(state.reason) || IsRejected(state) ? PodOutcome::kDisrupted
                                                           : PodOutcome::kFailed;
  }
  return state.phase == PodPhase::kRunning ? PodOutcome::kActive : PodOutcome::kPending;
}

}  // namespace

std::chrono::seconds DeletionGraceOf(const kube::Object& pod) {
  return std::chrono::seconds(std::clamp<int64_t>(
      NumberIn(FieldAt(pod.fields(), {"metadata"}), "deletionGracePeriodSeconds"), 0,
      kLongestGrace));
}

std::optional<ReplicaPod> ReadPod(const kube::Object& pod) {
  const auto slot = SlotOf(pod);
  if (!slot) return std::nullopt;
  return ReadPodAs(pod, *slot, kContainerName);
}

ReplicaPod ReadPodAs(const kube::Object& pod, const Slot& slot, std::string_view name) {
  const PodState state = kube::PodStateOf(pod);
  const ContainerState* container = state.container(name);
  const kube::OwnerReference owner = ControllerOf(pod).value_or(kube::OwnerReference());
  const std::string job = pod.label(kJobNameLabel).value_or("");
  ReplicaPod out{.name = pod.name(),
                 .uid = pod.uid(),
                 .slot = slot,
                 .job = job,
                 .owner = owner.uid,
                 .owner_is_job = owner.kind == kTFJobs.kind && owner.name == job,
                 .terminal = IsTerminal(pod, state),
                 .node_loss = NodeLossOf(state),
                 .created = pod.creation_time().value_or(WallTime()),
                 .deletion_time = state.deletion_time};
  for (const auto* list : {&state.init_containers, &state.containers}) {
    for (const ContainerState& each : *list) {
      out.restarts += std::clamp<int64_t>(each.restarts, 0, kMostRestarts);
    }
  }
  out.outcome = OutcomeOf(pod, state, container);
  switch (out.outcome) {
    case PodOutcome::kSucceeded:
      if (container != nullptr && container->exit) out.exit_code = container->exit->exit_code;
      break;
    case PodOutcome::kFailed:
      // Code 0 is not why the pod failed.
      if (container != nullptr && container->exit && container->exit->exit_code != 0) {
        out.exit_code = container->exit->exit_code;
      }
      ReadFailure(state, container, out);
      break;
    case PodOutcome::kDisrupted:
      ReadFailure(state, container, out);
      if (!state.disruption().empty()) out.reason = kube::DescribeDisruption(state.disruption());
      break;
    case PodOutcome::kTerminating:
      out.reason = kube::DescribeDisruption(state.disruption());
      break;
    case PodOutcome::kPending:
    case PodOutcome::kActive:
      ReadProblem(state, out);
      break;
  }
  ReadRestart(state, container, out);
  return out;
}

}  // namespace edl::reconciler
