#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reconciler/labels.h"

#include "base/clock.h"
#include "kube/object.h"
#include "kube/pod.h"

namespace edl::reconciler {

// What became of a replica's pod.
enum class PodOutcome {
  kPending,      // not running yet, or its state is unknown
  kActive,       // running
  kSucceeded,    // its training container exited with 0
  kFailed,       // its training container failed and is not restarted in place
  kDisrupted,    // it ended because of its node, the scheduler or an eviction
  kTerminating,  // it is being deleted; a replacement must wait until its name is free
};

// A deletion_time: the deletion was requested, and its grace period is not known yet.
inline constexpr WallTime kUnknownEnd = WallTime::max();

// Whether the node of a pod is unreachable, so that the pod does not go away when it is deleted.
enum class NodeLoss { kNone, kPossible, kCertain };

// The container whose log says why a pod failed.
struct LogSource {
  std::string pod;  // empty: there is none
  std::string container;
  bool previous = false;  // the log from before the last restart

  bool operator==(const LogSource&) const = default;
};

// The facts about a replica's pod that decide what happens next. It is small, because the operator
// keeps one for each pod of each job, also of those that have ended.
//
// A value.
struct ReplicaPod {
  std::string name;
  std::string uid;
  Slot slot;
  std::string job;    // the job that its label names
  std::string owner;  // the uid of its controller; empty: none
  // The controller is a TFJob with the name `job`: this one, or a deleted one of the same name.
  bool owner_is_job = false;
  PodOutcome outcome = PodOutcome::kPending;
  bool terminal = false;  // nothing runs in it any more
  NodeLoss node_loss = NodeLoss::kNone;
  // In the objects these two are by the clock of the API server, and in JobCache by our own.
  WallTime created;
  std::optional<WallTime> deletion_time;  // when its grace period ends
  int64_t restarts = 0;                   // of all its containers, in place
  std::optional<int> exit_code;           // of the training container, if it ended for good
  // For kFailed: "exit code 1 (Error)". For kDisrupted and kTerminating: who disrupted it. For
  // kPending and kActive: what is wrong with it, as "reason: message"; mostly empty.
  std::string reason;
  std::string problem_reason;  // for an event about a pod that is pending or active
  std::string last_exit;       // why a container was restarted in place, as for kFailed
  // The container that failed or was restarted in place; empty: none.
  std::string log_container;
  bool log_previous = false;  // it runs again: the log from before the restart explains it

  bool operator==(const ReplicaPod&) const = default;
};

// The log that says why the pod failed.
inline LogSource LogOf(const ReplicaPod& pod) {
  if (pod.log_container.empty()) return {};
  return {.pod = pod.name, .container = pod.log_container, .previous = pod.log_previous};
}

// nullopt: the labels do not name a role and an index.
std::optional<ReplicaPod> ReadPod(const kube::Object& pod);
// The same for a pod that is not a replica. Its outcome is that of the container `name`.
ReplicaPod ReadPodAs(const kube::Object& pod, const Slot& slot, std::string_view name);
// How long a pod that is being deleted may still run.
std::chrono::seconds DeletionGraceOf(const kube::Object& pod);

}  // namespace edl::reconciler
