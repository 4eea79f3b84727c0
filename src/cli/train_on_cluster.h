#pragma once

#include <memory>
#include <string>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// The cluster to run the job on, chosen by --backend and by the configuration. Null: the job runs
// on this machine, and `why` is set to the reason in brackets.
Result<std::unique_ptr<backend::ClusterJobs>> ChooseCluster(Platform& platform,
                                                            const FlagValues& flags,
                                                            std::string& why);

// Submits or resumes the job; with --dry_run or --yaml only prints or writes what would be
// submitted. Returns the exit code.
int TrainOnCluster(Platform& platform, backend::ClusterJobs& cluster, FlagValues flags);

}  // namespace edl::cli
