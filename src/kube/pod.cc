#include "kube/pod.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"

namespace edl::kube {
namespace {

using nlohmann::json;

PodPhase PhaseOf(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, PodPhase>, 4> kPhases = {
      {{"Pending", PodPhase::kPending},
       {"Running", PodPhase::kRunning},
       {"Succeeded", PodPhase::kSucceeded},
       {"Failed", PodPhase::kFailed}}};
  for (const auto& [name, phase] : kPhases) {
    if (name == text) return phase;
  }
  return PodPhase::kUnknown;
}

std::optional<ContainerExit> ExitIn(const json& state) {
  const json& terminated = FieldAt(state, {"terminated"});
  if (!terminated.is_object()) return std::nullopt;
  return ContainerExit{.exit_code = static_cast<int>(NumberIn(terminated, "exitCode")),
                       .reason = TextIn(terminated, "reason"),
                       .message = TextIn(terminated, "message")};
}

ContainerState ContainerOf(const json& in) {
  const json& state = FieldAt(in, {"state"});
  const json& waiting = FieldAt(state, {"waiting"});
  return {.name = TextIn(in, "name"),
          .image = TextIn(in, "image"),
          .ready = FlagIn(in, "ready"),
          .running = FieldAt(state, {"running"}).is_object(),
          .restarts = NumberIn(in, "restartCount"),
          .waiting_reason = TextIn(waiting, "reason"),
          .waiting_message = TextIn(waiting, "message"),
          .exit = ExitIn(state),
          .last_exit = ExitIn(FieldAt(in, {"lastState"}))};
}

std::vector<ContainerState> ContainersIn(const json& list) {
  std::vector<ContainerState> out;
  for (const json& container : list) out.push_back(ContainerOf(container));
  return out;
}

}  // namespace

const PodCondition* PodState::condition(std::string_view type) const {
  const auto found =
      std::find_if(conditions.begin(), conditions.end(),
                   [&](const PodCondition& condition) { return condition.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

const ContainerState* PodState::container(std::string_view name) const {
  const auto found =
      std::find_if(containers.begin(), containers.end(),
                   [&](const ContainerState& container) { return container.name == name; });
  return found == containers.end() ? nullptr : &*found;
}

bool PodState::ready() const {
  const PodCondition* found = condition("Ready");
  return found != nullptr && found->status == "True";
}

std::string PodState::disruption() const {
  const PodCondition* found = condition("DisruptionTarget");
  if (found == nullptr || found->status != "True") return "";
  return found->reason.empty() ? "DisruptionTarget" : found->reason;
}

std::string PodState::unschedulable() const {
  const PodCondition* found = condition("PodScheduled");
  if (found == nullptr || found->status != "False" || found->reason != "Unschedulable") return "";
  return found->message.empty() ? found->reason : found->message;
}

std::string DescribeDisruption(const std::string& reason) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDescriptions = {
      {{"PreemptionByScheduler", "preempted by the scheduler"},
       {"EvictionByEvictionAPI", "evicted (its node is drained)"},
       {"DeletionByTaintManager", "evicted from a node that is not ready"},
       {"DeletionByPodGC", "its node is gone"},
       {"TerminationByKubelet", "evicted by its node"}}};
  for (const auto& [name, text] : kDescriptions) {
    if (name == reason) return std::string(text);
  }
  return reason.empty() ? "its pod was deleted" : "disrupted: " + reason;
}

PodState PodStateOf(const Object& pod) {
  const json& status = FieldAt(pod.fields(), {"status"});
  PodState out{.phase = PhaseOf(TextIn(status, "phase")),
               .reason = TextIn(status, "reason"),
               .message = TextIn(status, "message"),
               .node = TextIn(FieldAt(pod.fields(), {"spec"}), "nodeName"),
               .ip = TextIn(status, "podIP"),
               .deleting = pod.deleting(),
               .deletion_time = pod.deletion_time(),
               .init_containers = ContainersIn(ListAt(status, {"initContainerStatuses"})),
               .containers = ContainersIn(ListAt(status, {"containerStatuses"}))};
  for (const json& condition : ListAt(status, {"conditions"})) {
    out.conditions.push_back({.type = TextIn(condition, "type"),
                              .status = TextIn(condition, "status"),
                              .reason = TextIn(condition, "reason"),
                              .message = TextIn(condition, "message")});
  }
  return out;
}

}  // namespace edl::kube
