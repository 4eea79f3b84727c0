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

// How a container ended.
struct ContainerExit {
  int exit_code = 0;   // 128 + signal for one that a signal ended
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
  std::optional<ContainerExit> exit;       // it has ended, and was not started again yet
  std::optional<ContainerExit> last_exit;  // of the run before this one
};

// What a Pod object says about its pod, as far as we act upon it. What phase, conditions and exit
// mean together is not for this to say: a pod that was preempted may well have Succeeded.
//
// A value.
struct PodState {
  PodPhase phase = PodPhase::kUnknown;
  std::string reason;  // mostly empty; "Evicted", "NodeLost", ...
  std::string message;
  std::string node;  // empty: not scheduled
  std::string ip;
  bool deleting = false;  // told to go; it may run for long yet, on a node that is away
  std::optional<WallTime> deletion_time;
  std::vector<PodCondition> conditions;
  std::vector<ContainerState> init_containers;
  std::vector<ContainerState> containers;

  bool terminal() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  // By its condition: False also when its node has not been heard of.
  bool ready() const;
  // Null: the pod has no such condition. Points into this.
  const PodCondition* condition(std::string_view type) const;
  // Null: there is no such container. Points into this.
  const ContainerState* container(std::string_view name) const;
  // Why somebody ends the pod: "PreemptionByScheduler", "EvictionByEvictionAPI",
  // "DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet". Empty: nobody does.
  std::string disruption() const;
  // Why the scheduler finds no node for it, in the scheduler's words. Empty: it has not said so.
  std::string unschedulable() const;
};

PodState PodStateOf(const Object& pod);

}  // namespace edl::kube
