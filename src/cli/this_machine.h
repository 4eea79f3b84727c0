#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// Checks whether this machine can run a job: the folder of jobs, a shell, the job's program, its
// volumes, memory and GPUs, and that its name is free. `flags` are those of `train`; the program
// and the name are checked only if the flags give them.
Result<std::vector<backend::Finding>> CheckThisMachine(Platform& platform, const FlagValues& flags,
                                                       const job::JobSpec& job);

}  // namespace edl::cli
