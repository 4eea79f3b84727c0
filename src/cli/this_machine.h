#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// What a job needs of this machine: the folder of jobs, a shell and Python, the data.
std::vector<backend::Finding> CheckThisMachine(const Platform& platform, const job::JobSpec& job);

}  // namespace edl::cli
