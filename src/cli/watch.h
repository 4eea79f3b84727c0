#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "cli/job_snapshot.h"
#include "cli/platform.h"

namespace edl::cli {

// Shows the progress of a job that does not depend on this process (a detached job, or one in a
// cluster) until the job ends, then its summary. Returns the exit code for the job's outcome. A
// signal ends the watching, not the job; see AttachToJob for the opposite.
int WatchJob(Platform& platform, const std::string& name,
             const std::function<Result<JobSnapshot>()>& snapshot);

}  // namespace edl::cli
