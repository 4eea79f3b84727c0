#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "backend/kubernetes/pod_groups.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// Checks whether a ResourceQuota leaves enough for these pods, in addition to the current use of
// its namespace. kMissing: the job cannot train at all. kOk: it can; the detail names the number of
// workers that fit. Considers requests, limits and the number of pods.
Finding CheckQuota(const kube::Object& quota, const std::vector<PodGroup>& groups);

// Whether the job can train while no worker runs.
bool TrainsWithoutWorkers(const std::vector<PodGroup>& groups);

}  // namespace edl::backend::kubernetes
