#pragma once

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// Makes what is submitted to a cluster from the flags of `train`. Runs the file of --cluster_spec,
// if one is given. InvalidArgument: the message names the flag, its value and what to do.
Result<backend::Submission> MakeSubmission(const Platform& platform,
                                           const backend::ClusterJobs& cluster,
                                           const FlagValues& given);

// The current time in seconds since 1970.
double WallSeconds(const Platform& platform);

}  // namespace edl::cli
