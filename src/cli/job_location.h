#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "base/flags.h"
#include "base/status.h"
#include "cli/job_snapshot.h"
#include "cli/job_store.h"
#include "cli/platform.h"

namespace edl::cli {

// Where the job that a verb names is: on this machine or in a cluster, never both.
struct JobLocation {
  std::string name;
  std::optional<JobFolder> folder;
  std::unique_ptr<backend::ClusterJobs> cluster;
};

// --backend and --namespace of verbs that look for jobs.
std::vector<FlagSpec> LocationFlags();

// Looks on this machine first, then in the cluster that is configured, unless --backend says where.
// NotFound names what comes near.
Result<JobLocation> FindJob(Platform& platform, const FlagValues& flags, const std::string& name);

// The cluster of --namespace and the kubeconfig. NotFound: none is configured.
Result<std::unique_ptr<backend::ClusterJobs>> FindCluster(Platform& platform,
                                                          const FlagValues& flags);

Result<JobSnapshot> TakeSnapshot(Platform& platform, const JobLocation& location);
JobSnapshot SnapshotOf(const backend::ClusterJob& job);

}  // namespace edl::cli
