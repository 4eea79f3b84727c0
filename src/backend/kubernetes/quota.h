#pragma once

#include <vector>

#include "backend/cluster_jobs.h"
#include "backend/kubernetes/pod_groups.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// Whether a ResourceQuota leaves enough for these pods, beside what its namespace uses now: missing
// if the job cannot train at all, ok with the number of workers that are left out otherwise. Looks
// at requests, limits and the number of pods.
Finding CheckQuota(const kube::Object& quota, const std::vector<PodGroup>& groups);

// Whether a job trains with none of its workers running.
bool TrainsWithoutWorkers(const std::vector<PodGroup>& groups);

}  // namespace edl::backend::kubernetes
