#include "backend/kubernetes/replica_warning.h"

namespace edl::backend::kubernetes {

using Kind = job::ReplicaEvent::Kind;

std::optional<ReplicaWarning> WarningOf(const job::ReplicaEvent& event) {
  // Creating a container is not a problem.
  const bool starts =
      event.reason.starts_with("ContainerCreating") || event.reason.starts_with("PodInitializing");
  if (event.kind == Kind::kPending && !event.reason.empty() && !starts) {
    return ReplicaWarning{"ReplicaWaits", event.name + ": " + event.reason};
  }
  if (event.kind == Kind::kExited && event.cause.kind == job::ExitCause::Kind::kNotLaunched) {
    return ReplicaWarning{"ReplicaNotLaunched", event.name + ": " + event.cause.message};
  }
  return std::nullopt;
}

}  // namespace edl::backend::kubernetes
