#pragma once

#include <memory>
#include <string>

#include "backend/cluster_jobs.h"
#include "base/clock.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// Connects to the cluster of $KUBECONFIG, of ~/.kube/config or, unless `force_file`, of the pod in
// which this process runs. NotFound: no cluster is configured. `clock` outlives the result.
Result<std::unique_ptr<ClusterJobs>> ConnectClusterJobs(const Clock& clock, const std::string& ns,
                                                        bool force_file);

// The current context of the kubeconfig; empty if there is none.
std::string ClusterContext();

}  // namespace edl::backend::kubernetes
