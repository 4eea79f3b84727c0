#pragma once

#include <string>

#include "job/replica.h"
#include "job/role.h"
#include "kube/pod.h"

namespace edl::backend::kubernetes {

// The state of a replica, derived from its pod object.
struct PodLife {
  job::ReplicaEvent::Kind kind = job::ReplicaEvent::Kind::kPending;
  job::ExitCause cause;  // for kExited
  std::string reason;    // for kPending: what it waits for
  bool started = false;  // the program has run; it may have ended
  // The control plane has lost contact with the node. The replica may still be alive.
  bool node_lost = false;
};

// Whether the kubelet restarts a container that has ended.
enum class Restart { kNever, kByKubelet };

// A replica has exited
//   - when its container has ended and will not be restarted (the phase of the pod follows 1 s
//     later);
//   - for a worker, when the deletion of its pod is requested, so that its slot can be refilled
//     while the pod terminates; chief, ps and evaluator must have terminated before another
//     takes their name;
//   - when the deletion was requested and the node is unreachable: the node will end the pod, or
//     will never return.
// A lost node alone is not an exit: the master decides, which knows whether the replica is silent.
// A replica whose pod is disrupted or deleted counts as killed whatever its exit code, because a
// program that exits 0 on SIGTERM has not done its work.
PodLife LifeOf(const kube::PodState& pod, job::Role role, const std::string& container,
               Restart restart);

// The exit cause of a replica whose pod object was deleted.
job::ExitCause CauseOfDeletion(const kube::PodState& last, const std::string& container);

}  // namespace edl::backend::kubernetes
