#pragma once

#include <optional>
#include <string>

#include "job/replica.h"

namespace edl::backend::kubernetes {

// A Warning event on the pod of the master, which `kubectl describe` shows.
struct ReplicaWarning {
  std::string reason;  // "ReplicaWaits"
  std::string note;
};

// The warning for a replica event; nullopt for events of a normal start or end.
std::optional<ReplicaWarning> WarningOf(const job::ReplicaEvent& event);

}  // namespace edl::backend::kubernetes
