#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "cli/job_snapshot.h"
#include "cli/platform.h"

namespace edl::cli {

// Shows a job that runs by itself until it has ended, then its summary; returns the exit code that
// its end asks for. A signal ends the watching, not the job.
int WatchJob(Platform& platform, const std::string& name,
             const std::function<Result<JobSnapshot>()>& snapshot);

}  // namespace edl::cli
