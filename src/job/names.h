#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "job/role.h"

namespace edl::job {

// The longest job name for which every name below still fits into the 63 characters that
// Kubernetes allows, with ids of up to six digits.
inline constexpr size_t kLongestJobName = 39;

// Ok when `name` can name a job: small letters, digits and '-', a letter first, no '-' last
// (DNS-1035), short enough for all that is named after it.
Status CheckJobName(std::string_view name);

// "elasticdl-<job>-master": the master's pod, service and log.
std::string MasterName(std::string_view job);

// "<job>-edljob-<role>-<id>": a replica of a job with a --job_command. Its service has the index in
// place of the id.
std::string ReplicaName(std::string_view job, Role role, int64_t id);

}  // namespace edl::job
