#include "cli/job_location.h"

#include <utility>

namespace edl::cli {

std::vector<FlagSpec> LocationFlags() {
  return {{.name = "backend",
           .default_value = "auto",
           .help = "Where to search for the job; auto: on this machine, then in the cluster.",
           .choices = {"auto", "local", "kubernetes"},
           .environment = "ELASTICDL_BACKEND"},
          {.name = "namespace",
           .help = "The cluster's namespace; empty: that of the kubeconfig.",
           .value_name = "NAME"}};
}

Result<std::unique_ptr<backend::ClusterJobs>> FindCluster(Platform& platform,
                                                          const FlagValues& flags) {
  const bool only_file = flags.table().Find("force_use_kube_config_file") != nullptr &&
                         flags.Bool("force_use_kube_config_file");
  return platform.cluster(flags.given("namespace") ? flags.String("namespace") : "",
                          only_file ? ClusterConfig::kFile : ClusterConfig::kPodOrFile);
}

Result<JobLocation> FindJob(Platform& platform, const FlagValues& flags, const std::string& name) {
  const std::string& backend = flags.String("backend");
  Status here = Ok();
  if (backend != "kubernetes") {
    Result<JobFolder> folder = JobStore(platform.home).Find(name);
    if (folder.ok())
      return JobLocation{.name = name, .folder = *std::move(folder), .cluster = nullptr};
    here = folder.status();
    if (backend == "local" || here.code() != Code::kNotFound) return here;
  }
  Result<std::unique_ptr<backend::ClusterJobs>> cluster = FindCluster(platform, flags);
  if (!cluster.ok()) {
    const bool none = cluster.status().code() == Code::kNotFound;
    return none && !here.ok() ? here : cluster.status();
  }
  const Result<backend::ClusterJob> job = (*cluster)->Find(name);
  if (job.ok())
    return JobLocation{.name = name, .folder = std::nullopt, .cluster = *std::move(cluster)};
  if (here.ok()) return job.status();
  return job.status().code() == Code::kNotFound
             ? NotFound("{}; nor in {}", here.message(), (*cluster)->Where())
             : job.status();
}

JobSnapshot SnapshotOf(const backend::ClusterJob& job) {
  JobSnapshot snapshot;
  Result<job::JobView> view = job::JobView::FromJson(job.status_json);
  if (view.ok()) {
    snapshot.view = *std::move(view);
  } else {
    snapshot.view.name = job.name;
    snapshot.readable = view.status();
    snapshot.trouble =
        "cannot read the status that its master published: " + view.status().message();
  }
  snapshot.liveness = job.running                    ? Liveness::kRunning
                      : IsFinal(snapshot.view.state) ? Liveness::kEnded
                                                     : Liveness::kInterrupted;
  if (!job.trouble.empty() && snapshot.liveness != Liveness::kEnded) snapshot.trouble = job.trouble;
  return snapshot;
}

Result<JobSnapshot> TakeSnapshot(Platform& platform, const JobLocation& location) {
  if (location.folder.has_value()) return TakeSnapshot(platform, *location.folder);
  EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, location.cluster->Find(location.name));
  return SnapshotOf(job);
}

}  // namespace edl::cli
