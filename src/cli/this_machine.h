#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// What a job needs of this machine: the folder of jobs, a shell, its program, its data, memory and
// GPUs, and a free name. `flags` are those of `train`; without a command or a name of the job these
// are not checked.
Result<std::vector<backend::Finding>> CheckThisMachine(Platform& platform, const FlagValues& flags,
                                                       const job::JobSpec& job);

}  // namespace edl::cli
