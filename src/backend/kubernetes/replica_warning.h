#pragma once

#include <optional>
#include <string>

#include "job/replica.h"

namespace edl::backend::kubernetes {

// A Warning event on the master's pod, for people who run `kubectl describe`.
struct ReplicaWarning {
  std::string reason;  // "ReplicaWaits"
  std::string note;
};

// The warning about what happened to a replica. None for what belongs to a normal start or end.
std::optional<ReplicaWarning> WarningOf(const job::ReplicaEvent& event);

}  // namespace edl::backend::kubernetes
