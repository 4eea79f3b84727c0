#pragma once

#include <optional>
#include <string>

#include "job/replica.h"

namespace edl::backend::kubernetes {

// A Warning event on the pod of the master, which `kubectl describe` shows.
struct ReplicaWarning {
  std::string reason;  // "ReplicaWaits" or "ReplicaNotLaunched"
  std::string note;    // the name of the replica and the reason
};

// The warning for a replica that waits, for example for a node, or that could not be launched.
// nullopt for every other event. The failure of a program is one of them: its pod shows it.
std::optional<ReplicaWarning> WarningOf(const job::ReplicaEvent& event);

}  // namespace edl::backend::kubernetes
