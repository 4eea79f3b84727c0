#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// Looks up, on this machine, what --job_command starts with: the program, the file that Python is
// to run, and whether that Python can import elasticai_api. A command that is more than a plain
// word is left to the shell and reported as not checked.
std::vector<backend::Finding> CheckCommand(const Platform& platform, const job::JobSpec& job);

}  // namespace edl::cli
