#pragma once

#include <memory>
#include <string>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// The cluster that the job is for, by --backend and by what is configured; null: this machine, and
// `why` says in brackets how that was chosen.
Result<std::unique_ptr<backend::ClusterJobs>> ChooseCluster(Platform& platform,
                                                            const FlagValues& flags,
                                                            std::string& why);

// Submits the job, or goes on with it, or only prints or writes what would be submitted. Returns
// the exit code.
int TrainOnCluster(Platform& platform, backend::ClusterJobs& cluster, FlagValues flags);

}  // namespace edl::cli
