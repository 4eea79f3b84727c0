#pragma once

#include <memory>
#include <string>

#include "backend/cluster_jobs.h"
#include "base/clock.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// Whether the service account of the pod in which this process runs may be used.
enum class PodCredentials { kAllowed, kIgnored };

// Connects to the cluster of $KUBECONFIG or of ~/.kube/config or, if neither exists and pod
// credentials are allowed, to the cluster of this pod. `ns`: the namespace; empty: that of the
// configuration. NotFound: no cluster is configured. `clock` outlives the result.
Result<std::unique_ptr<ClusterJobs>> ConnectClusterJobs(const Clock& clock, const std::string& ns,
                                                        PodCredentials pod_credentials);

// The current context of the kubeconfig; empty if there is none.
std::string ClusterContext();

}  // namespace edl::backend::kubernetes
