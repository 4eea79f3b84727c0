#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// Checks that the model zoo and the file of --model_def exist on this machine. Paths below a
// mount_path of --volume are not checked. REQUIRES: job.model.
std::vector<backend::Finding> CheckModelFiles(const Platform& platform, const job::JobSpec& job);

// Also checks that the Python of the workers exists and can import elasticdl and TensorFlow.
std::vector<backend::Finding> CheckModel(const Platform& platform, const job::JobSpec& job);

}  // namespace edl::cli
