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

// Where a job is: either `folder` (this machine) or `cluster` is set.
struct JobLocation {
  std::string name;
  std::optional<JobFolder> folder;
  std::unique_ptr<backend::ClusterJobs> cluster;
};

// The flags --backend and --namespace, for verbs that take a job.
std::vector<FlagSpec> LocationFlags();

// Finds a job on this machine or, if it is not there, in the configured cluster; --backend
// restricts the search. NotFound: the message names jobs with similar names.
Result<JobLocation> FindJob(Platform& platform, const FlagValues& flags, const std::string& name);

// The configured cluster, in the namespace of --namespace. NotFound: no cluster is configured.
Result<std::unique_ptr<backend::ClusterJobs>> FindCluster(Platform& platform,
                                                          const FlagValues& flags);

// Reads the status of a job, and whether it runs. NotFound: the job was deleted meanwhile. A status
// that cannot be parsed is not an error: see JobSnapshot::readable.
Result<JobSnapshot> TakeSnapshot(Platform& platform, const JobLocation& location);
// The snapshot of a job that was read from a cluster.
JobSnapshot SnapshotOf(const backend::ClusterJob& job);

}  // namespace edl::cli
