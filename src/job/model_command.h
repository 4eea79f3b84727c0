#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"

namespace edl::job {

// The command line of a worker of a job with a model: an argument vector, which no shell reads.
// Texts that are empty are omitted. REQUIRES: job.model.
std::vector<std::string> ModelWorkerCommand(const JobSpec& job);

// The command line of a worker: that of the model, or --job_command.
std::vector<std::string> WorkerCommand(const JobSpec& job);

}  // namespace edl::job
