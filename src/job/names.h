#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "job/role.h"

namespace edl::job {

// With a job name of at most this length, every name below fits into the 63 characters that
// Kubernetes allows, for ids of up to six digits.
inline constexpr size_t kLongestJobName = 39;

// Ok if `name` is a valid job name: lower-case letters, digits and '-', beginning with a letter,
// not ending with '-' (DNS-1035), and at most kLongestJobName characters.
Status CheckJobName(std::string_view name);

// "elasticdl-<job>-master": the master's pod, service and log.
std::string MasterName(std::string_view job);

// "<job>-edljob-<role>-<id>": the name of a replica. The name of its service has the index instead
// of the id.
std::string ReplicaName(std::string_view job, Role role, int64_t id);

}  // namespace edl::job
