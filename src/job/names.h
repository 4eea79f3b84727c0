#pragma once

#include <cstdint>
#include <optional>
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

// Whose replicas are named: those of --job_command or those of --model_def.
enum class Naming { kCommand, kModel };

// "<job>-edljob-<role>-<id>", or "elasticdl-<job>-<role>-<id>" in a job with a model: the name of a
// replica. The name of its service has the index instead of the id.
std::string ReplicaName(std::string_view job, Role role, int64_t id,
                        Naming naming = Naming::kCommand);

// "worker-0" for the name of a replica of `job`, in either naming. nullopt: the name of anything
// else, such as a replica of another job.
std::optional<std::string> ReplicaLabel(std::string_view job, std::string_view name);

}  // namespace edl::job
