#include "backend/kubernetes/master_pod.h"

#include <fmt/format.h>

#include "backend/kubernetes/pod_life.h"
#include "kube/pod.h"

namespace edl::backend::kubernetes {
namespace {

// The last line of the container's output, which the kubelet keeps for containers that fail.
std::string LastLineOf(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

std::string WhyItEnded(const kube::PodState& state, const kube::ContainerExit& exit) {
  if (exit.reason == "OOMKilled") {
    return "its master ran out of memory; raise --master_resource_limit";
  }
  if (exit.reason == "StartError" || exit.reason == "ContainerCannotRun") {
    return fmt::format(
        "its master cannot start: {} (check that the image of --image_name has elasticdl on its "
        "PATH)",
        exit.message);
  }
  if (state.deleting || !state.disruption().empty()) {
    return "its master was terminated: " + kube::DescribeDisruption(state.disruption());
  }
  if (exit.exit_code == 0) return "";
  const std::string last = LastLineOf(exit.message);
  return fmt::format("its master ended with exit code {}{}{}", exit.exit_code,
                     last.empty() ? "" : ": ", last);
}

}  // namespace

MasterLife MasterLifeOf(const kube::Object& pod) {
  const kube::PodState state = kube::PodStateOf(pod);
  const kube::ContainerState* master = state.container(pod.name());
  const bool has_ended = master != nullptr && master->exit.has_value();
  MasterLife life{.running = !state.terminal() && !has_ended};
  if (has_ended) {
    life.trouble = WhyItEnded(state, *master->exit);
  } else if (state.phase == kube::PodPhase::kFailed) {
    // The node rejected or lost the pod.
    life.trouble = fmt::format("its master's pod failed: {}{}{}",
                               state.reason.empty() ? "the node gives no reason" : state.reason,
                               state.message.empty() ? "" : ": ", state.message);
    if (!state.disruption().empty()) {
      life.trouble = "its master was terminated: " + kube::DescribeDisruption(state.disruption());
    }
  } else if (state.deleting) {
    life.trouble = "its master's pod is being deleted";
  } else if (std::string why = state.unschedulable(); !why.empty()) {
    life.trouble = "its master cannot be scheduled: " + why;
  }
  if (!life.trouble.empty() || has_ended) return life;
  for (const kube::ContainerState& container : state.containers) {
    if (!container.waiting_reason.empty() && container.waiting_reason != "ContainerCreating" &&
        container.waiting_reason != "PodInitializing") {
      life.trouble = fmt::format("its master waits: {}: {}", container.waiting_reason,
                                 container.waiting_message);
    }
  }
  const kube::PodCondition* ready = state.condition("Ready");
  if (life.trouble.empty() && master != nullptr && master->running && master->ready &&
      ready != nullptr && ready->status != "True" && ready->reason.empty()) {
    life.trouble = fmt::format(
        "the cluster has lost contact with its master's node {}: this status may be outdated",
        state.node);
  }
  return life;
}

}  // namespace edl::backend::kubernetes
