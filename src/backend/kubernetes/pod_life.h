#pragma once

#include <string>

#include "job/replica.h"
#include "job/role.h"
#include "kube/pod.h"

namespace edl::backend::kubernetes {

// What a pod's object says about the replica in it.
struct PodLife {
  job::ReplicaEvent::Kind kind = job::ReplicaEvent::Kind::kPending;
  job::ExitCause cause;  // kExited
  std::string reason;    // kPending: why it waits
  bool started = false;  // its program ran, whether or not it still does
  // The control plane has lost contact with the node. The replica may well be alive.
  bool node_lost = false;
};

// How the kubelet deals with a container that has ended.
enum class Restart { kNever, kByKubelet };

// The end of a replica is known:
//   - when its container has ended and will not be restarted (the pod's phase follows 1 s later);
//   - for a worker as soon as its pod is told to go, so that its place is refilled while it still
//     goes; chief, ps and evaluator must be gone before another takes their name;
//   - when it was told to go and there is no contact with its node: the node ends it, or is gone
//     for good.
// A node that is lost is no end by itself: who knows whether the replica is silent decides.
// A pod that somebody disrupts or deletes was killed, however it ends: one that exits 0 on SIGTERM
// has not done its work.
PodLife LifeOf(const kube::PodState& pod, job::Role role, const std::string& container,
               Restart restart);

// Who disrupted a pod, in words for people, by the reason of its condition.
std::string WordsForDisruption(const std::string& reason);

// How the replica of a pod ended whose object is gone.
job::ExitCause CauseOfDeletion(const kube::PodState& last, const std::string& container);

}  // namespace edl::backend::kubernetes
