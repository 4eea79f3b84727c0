#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/format.h"
#include "cli/job_location.h"
#include "cli/progress.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

std::string RecordsText(const job::JobView& view) {
  const Records records = RecordsOf(view);
  if (records.epoch == 0) return "-";
  if (records.total == 0) return Count(records.done);
  return fmt::format("{} of {}", Count(records.done), Count(records.total));
}

std::string AsText(const std::vector<JobSnapshot>& snapshots) {
  if (snapshots.empty()) return "There are no jobs.\n";
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "RECORDS", "STARTED", "REPLICAS"}};
  for (const JobSnapshot& snapshot : snapshots) {
    std::string last = snapshot.liveness == Liveness::kRunning
                           ? ReplicasByState(snapshot.view)
                           : EscapeControlChars(snapshot.view.reason);
    if (!snapshot.trouble.empty()) last = EscapeControlChars(snapshot.trouble);
    rows.push_back({snapshot.view.name, snapshot.state(), RecordsText(snapshot.view),
                    When(snapshot.view.started_at), std::move(last)});
  }
  return Columns(rows);
}

// The jobs of this machine, then those of the cluster.
Result<std::vector<JobSnapshot>> Gather(Platform& platform, const FlagValues& flags) {
  const std::string& backend = flags.String("backend");
  std::vector<JobSnapshot> snapshots;
  if (backend != "kubernetes") {
    EDL_ASSIGN_OR_RETURN(snapshots, TakeAllSnapshots(platform));
  }
  if (backend == "local") return snapshots;
  const auto cluster = FindCluster(platform, flags);
  const bool must = backend == "kubernetes";
  if (!must && cluster.status().code() == Code::kNotFound) return snapshots;
  const Result<std::vector<backend::ClusterJob>> jobs =
      cluster.ok() ? (*cluster)->List() : cluster.status();
  if (!jobs.ok()) {
    if (must) return jobs.status();
    platform.err << "elasticdl: cannot list the jobs of the cluster: " << jobs.status().message()
                 << "\n";
    return snapshots;
  }
  for (const backend::ClusterJob& job : *jobs) snapshots.push_back(SnapshotOf(job));
  return snapshots;
}

}  // namespace

int ListJobs(Platform& platform, const FlagValues& flags) {
  const Result<std::vector<JobSnapshot>> snapshots = Gather(platform, flags);
  if (!snapshots.ok()) return Fail(platform, snapshots.status());
  if (flags.String("output") == "json") {
    nlohmann::json out = nlohmann::json::array();
    for (const JobSnapshot& snapshot : *snapshots) out.push_back(ReadJson(snapshot.ToJson()));
    platform.out << Dump(out, 2) << "\n";
  } else {
    platform.out << AsText(*snapshots);
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
