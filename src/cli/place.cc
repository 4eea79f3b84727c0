#include "cli/place.h"

#include <utility>

namespace edl::cli {

std::vector<FlagSpec> PlaceFlags() {
  return {{.name = "backend",
           .default_value = "auto",
           .help = "Where to look; auto: on this machine, then in the cluster.",
           .choices = {"auto", "local", "kubernetes"},
           .environment = "ELASTICDL_BACKEND"},
          {.name = "namespace",
           .help = "The cluster's namespace; empty: the kubeconfig's.",
           .value_name = "NAME"}};
}

Result<std::unique_ptr<backend::ClusterJobs>> FindCluster(Platform& platform,
                                                          const FlagValues& flags) {
  const bool force_file = flags.table().Find("force_use_kube_config_file") != nullptr &&
                          flags.Bool("force_use_kube_config_file");
  return platform.cluster(flags.given("namespace") ? flags.String("namespace") : "", force_file);
}

Result<Place> FindJob(Platform& platform, const FlagValues& flags, const std::string& name) {
  const std::string& backend = flags.String("backend");
  Status here = Ok();
  if (backend != "kubernetes") {
    Result<JobFolder> folder = JobStore(platform.home).Find(name);
    if (folder.ok()) return Place{.name = name, .folder = *std::move(folder), .cluster = nullptr};
    here = folder.status();
    if (backend == "local" || here.code() != Code::kNotFound) return here;
  }
  Result<std::unique_ptr<backend::ClusterJobs>> cluster = FindCluster(platform, flags);
  if (!cluster.ok()) {
    const bool none = cluster.status().code() == Code::kNotFound;
    return none && !here.ok() ? here : cluster.status();
  }
  const Result<backend::ClusterJob> job = (*cluster)->Find(name);
  if (job.ok()) return Place{.name = name, .folder = std::nullopt, .cluster = *std::move(cluster)};
  if (here.ok()) return job.status();
  return job.status().code() == Code::kNotFound
             ? NotFound("{}; nor is there one in {}", here.message(), (*cluster)->Where())
             : job.status();
}

Look LookOf(const backend::ClusterJob& job) {
  Look look;
  Result<job::JobView> view = job::JobView::FromJson(job.status_json);
  if (view.ok()) {
    look.view = *std::move(view);
  } else {
    look.view.name = job.name;
    look.readable = view.status();
    look.trouble = "what its master shows cannot be read: " + view.status().message();
  }
  look.standing = job.running                ? Standing::kRunning
                  : IsFinal(look.view.state) ? Standing::kEnded
                                             : Standing::kInterrupted;
  if (!job.trouble.empty() && look.standing != Standing::kEnded) look.trouble = job.trouble;
  return look;
}

Result<Look> LookAt(Platform& platform, const Place& place) {
  if (place.folder.has_value()) return LookAt(platform, *place.folder);
  EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, place.cluster->Find(place.name));
  return LookOf(job);
}

}  // namespace edl::cli
