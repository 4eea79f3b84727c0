#pragma once

#include <memory>
#include <string>

#include "backend/cluster_jobs.h"
#include "base/clock.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// The jobs of the cluster that the environment names: by $KUBECONFIG, ~/.kube/config or, unless
// `force_file`, the pod that this runs in. NotFound: none is configured. `clock` outlives them.
Result<std::unique_ptr<ClusterJobs>> ConnectClusterJobs(const Clock& clock, const std::string& ns,
                                                        bool force_file);

// The name of the kubeconfig's current context; empty: there is none.
std::string ClusterContext();

}  // namespace edl::backend::kubernetes
