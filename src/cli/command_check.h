#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// Checks the start of --job_command on this machine: whether the program exists, whether the script
// that Python runs exists, and whether that Python can import elasticai_api. A program that is not
// a plain word (a variable, a subshell) cannot be checked and is reported so.
std::vector<backend::Finding> CheckCommand(const Platform& platform, const job::JobSpec& job);

}  // namespace edl::cli
