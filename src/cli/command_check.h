#pragma once

#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// Checks the start of --job_command on this machine: whether the program exists, whether the script
// that Python runs exists, and whether that Python can import elasticai_api. A program that is not
// a plain word (a variable, a subshell) cannot be checked and is reported so.
std::vector<backend::Finding> CheckCommand(const Platform& platform, const job::JobSpec& job);

// Runs a command with the environment of the job's replicas. True: it exited with 0.
bool Succeeds(const Platform& platform, const job::JobSpec& job, std::vector<std::string> command);

// Whether the path is below a mount_path of --volume, so that only replicas see it.
bool IsMounted(const job::JobSpec& job, const std::string& path);

}  // namespace edl::cli
