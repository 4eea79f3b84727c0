#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "base/status.h"
#include "cli/job_store.h"
#include "cli/look.h"
#include "cli/platform.h"

namespace edl::cli {

// Where the job that a verb names is: on this machine or in a cluster, never both.
struct Place {
  std::string name;
  std::optional<JobFolder> folder;
  std::unique_ptr<backend::ClusterJobs> cluster;
};

// --backend and --namespace of verbs that look for jobs.
std::vector<FlagSpec> PlaceFlags();

// Looks on this machine first, then in the cluster that is configured, unless --backend says where.
// NotFound names what comes near.
Result<Place> FindJob(Platform& platform, const FlagValues& flags, const std::string& name);

// The cluster of --namespace and the kubeconfig. NotFound: none is configured.
Result<std::unique_ptr<backend::ClusterJobs>> FindCluster(Platform& platform,
                                                          const FlagValues& flags);

Result<Look> LookAt(Platform& platform, const Place& place);
Look LookOf(const backend::ClusterJob& job);

}  // namespace edl::cli
