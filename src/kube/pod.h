#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/object.h"

namespace edl::kube {

enum class PodPhase { kUnknown, kPending, kRunning, kSucceeded, kFailed };

struct PodCondition {
  std::string type;    // "Ready", "PodScheduled", "DisruptionTarget", ...
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
};

// How a container terminated.
struct ContainerExit {
  int exit_code = 0;   // 128 + signal number after a signal
  std::string reason;  // "Completed", "Error", "OOMKilled", ...
  std::string message;

  bool operator==(const ContainerExit&) const = default;
};

struct ContainerState {
  std::string name;
  std::string image;
  bool ready = false;
  bool running = false;
  int64_t restarts = 0;
  std::string waiting_reason;  // "ContainerCreating", "ErrImagePull", "CrashLoopBackOff", ...
  std::string waiting_message;
  std::optional<ContainerExit> exit;       // terminated, and not restarted yet
  std::optional<ContainerExit> last_exit;  // of the run before the last restart
};

// The fields of a Pod object on which this project acts. It does not interpret phase, conditions
// and exits together; pod_life.h in backend/kubernetes does: a preempted pod, for example, may be
// in phase Succeeded.
//
// A value.
struct PodState {
  PodPhase phase = PodPhase::kUnknown;
  std::string reason;  // mostly empty; "Evicted", "NodeLost", ...
  std::string message;
  std::string node;  // empty: not scheduled yet
  std::string ip;
  bool deleting = false;  // deletion requested; on an unreachable node it may still run for long
  std::optional<WallTime> deletion_time;
  std::vector<PodCondition> conditions;
  std::vector<ContainerState> init_containers;
  std::vector<ContainerState> containers;

  bool terminal() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  // From the Ready condition, which is also False while the node is unreachable.
  bool ready() const;
  // Returns null if the pod has no such condition. The pointer is into this object.
  const PodCondition* condition(std::string_view type) const;
  // Returns null if there is no such container. The pointer is into this object.
  const ContainerState* container(std::string_view name) const;
  // Reason of the DisruptionTarget condition: "PreemptionByScheduler", "EvictionByEvictionAPI",
  // "DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet". Empty: the pod is not
  // being disrupted.
  std::string disruption() const;
  // Why the scheduler finds no node for the pod, as the scheduler reports it. Empty: it has not
  // reported that.
  std::string unschedulable() const;
};

PodState PodStateOf(const Object& pod);

// Describes who disrupted a pod, for messages. `reason` is that of its DisruptionTarget condition;
// empty: its deletion was requested.
std::string DescribeDisruption(const std::string& reason);

}  // namespace edl::kube
