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

std::string AsText(const std::vector<JobSnapshot>& looks) {
  if (looks.empty()) return "There are no jobs.\n";
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "RECORDS", "STARTED", "REPLICAS"}};
  for (const JobSnapshot& snapshot : looks) {
    std::string last = snapshot.liveness == Liveness::kRunning
                           ? ReplicasByState(snapshot.view)
                           : EscapeControlChars(snapshot.view.reason);
    if (!snapshot.trouble.empty()) last = EscapeControlChars(snapshot.trouble);
    rows.push_back({snapshot.view.name, snapshot.state(), RecordsText(snapshot.view),
                    When(snapshot.view.started_at), std::move(last)});
  }
  return Columns(rows);
}

// Jobs of this machine, then of the cluster.
Result<std::vector<JobSnapshot>> Gather(Platform& platform, const FlagValues& flags) {
  const std::string& backend = flags.String("backend");
  std::vector<JobSnapshot> looks;
  if (backend != "kubernetes") {
    EDL_ASSIGN_OR_RETURN(looks, LookAtAll(platform));
  }
  if (backend == "local") return looks;
  const auto cluster = FindCluster(platform, flags);
  const bool must = backend == "kubernetes";
  if (!must && cluster.status().code() == Code::kNotFound) return looks;
  const Result<std::vector<backend::ClusterJob>> jobs =
      cluster.ok() ? (*cluster)->List() : cluster.status();
  if (!jobs.ok()) {
    if (must) return jobs.status();
    platform.err << "elasticdl: without the cluster's jobs: " << jobs.status().message() << "\n";
    return looks;
  }
  for (const backend::ClusterJob& job : *jobs) looks.push_back(SnapshotOf(job));
  return looks;
}

}  // namespace

int ListJobs(Platform& platform, const FlagValues& flags) {
  const Result<std::vector<JobSnapshot>> looks = Gather(platform, flags);
  if (!looks.ok()) return Fail(platform, looks.status());
  if (flags.String("output") == "json") {
    nlohmann::json out = nlohmann::json::array();
    for (const JobSnapshot& snapshot : *looks) out.push_back(ReadJson(snapshot.ToJson()));
    platform.out << Dump(out, 2) << "\n";
  } else {
    platform.out << AsText(*looks);
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
