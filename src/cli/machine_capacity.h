#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

// Compares the resources that flags request for replicas with those of this machine. A replica that
// requests more memory or GPUs than the machine has blocks the job. Requesting too many CPUs is
// only reported, because processes share them. Default requests are ignored: they are meant for
// clusters.
std::vector<backend::Finding> CheckCapacity(const Machine& machine, const FlagValues& flags,
                                            const job::JobSpec& job);

}  // namespace edl::cli
