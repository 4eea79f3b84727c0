#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// What the job's replicas ask for by flags, compared with what this machine has. A single replica
// that asks for more memory or GPUs than there are blocks the job. CPUs are shared on one machine,
// so asking for too many is only reported. Defaults are not compared: they are meant for clusters.
std::vector<backend::Finding> CheckRoom(const Machine& machine, const FlagValues& flags,
                                        const job::JobSpec& job);

}  // namespace edl::cli
