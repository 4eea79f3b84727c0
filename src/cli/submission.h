#pragma once

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// The job that the flags of `train` describe, as it is submitted to a cluster. InvalidArgument: one
// clause that names the flag, the value and the way out. Runs the file of --cluster_spec, if any.
Result<backend::Submission> MakeSubmission(const Platform& platform,
                                           const backend::ClusterJobs& cluster,
                                           const FlagValues& given);

}  // namespace edl::cli
