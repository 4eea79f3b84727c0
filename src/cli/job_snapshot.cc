#include "cli/job_snapshot.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/job_master.h"
#include "cli/last_log_message.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

Result<job::JobView> GetViewFromMaster(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const auto master, ClientOfMaster(folder));
  return master->GetJob(3s);
}

void AddFromLedger(Platform& platform, const JobFolder& folder, JobSnapshot& snapshot) {
  const Result<job::JobView> ledger = platform.local.read_ledger_view(folder.ledger());
  if (!ledger.ok()) {
    // NotFound: the master never ran.
    if (ledger.status().code() != Code::kNotFound && snapshot.trouble.empty()) {
      snapshot.trouble = "cannot read its ledger: " + ledger.status().message();
    }
    return;
  }
  if (!snapshot.readable.ok()) {
    snapshot.view.state = ledger->state;
    snapshot.view.reason = ledger->reason;
    snapshot.view.started_at = ledger->started_at;
    snapshot.view.ended_at = ledger->ended_at;
    snapshot.view.success_rule = ledger->success_rule;
  }
  // A ledger with fewer batches than the status is damaged; `train --resume` reports it.
  if (ledger->version < snapshot.view.version) return;
  snapshot.view.version = ledger->version;
  snapshot.view.datasets = ledger->datasets;
}

std::string WhyInterrupted(Platform& platform, const JobFolder& folder) {
  const Result<JobFolder::End> end = folder.ReadEnd();
  if (!end.ok()) return "its agent was killed, or the machine was shut down";
  if (end->exit_code == kExitUsage) {
    if (std::string last = LastLogMessage(platform, folder); !last.empty()) return last;
  }
  return end->reason;
}

}  // namespace

std::string JobSnapshot::state() const {
  return liveness == Liveness::kInterrupted ? "interrupted" : std::string(NameOf(view.state));
}

std::string JobSnapshot::ToJson() const {
  nlohmann::json out = ReadJson(view.ToJson());
  out["state"] = state();
  if (liveness == Liveness::kInterrupted) {
    // The last view may show running replicas, but no process of an interrupted job runs.
    for (nlohmann::json& replica : out["replicas"]) {
      if (replica["state"] == "running" || replica["state"] == "pending") {
        replica["state"] = "interrupted";
      }
    }
  }
  if (!trouble.empty()) out["trouble"] = trouble;
  return Dump(out, 2);
}

Result<JobSnapshot> TakeSnapshot(Platform& platform, const JobFolder& folder) {
  JobSnapshot snapshot;
  EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
  if (running) {
    snapshot.liveness = Liveness::kRunning;
    Result<job::JobView> view = GetViewFromMaster(folder);
    if (view.ok()) {
      snapshot.view = *std::move(view);
      return snapshot;
    }
    snapshot.trouble = "the master does not answer: " + view.status().message();
    Result<job::JobView> written = folder.ReadView();
    snapshot.readable = written.status();
    if (written.ok()) snapshot.view = *std::move(written);
    snapshot.view.name = folder.name();
    return snapshot;
  }
  return ReadSnapshot(platform, folder);
}

JobSnapshot ReadSnapshot(Platform& platform, const JobFolder& folder) {
  JobSnapshot snapshot;
  Result<job::JobView> written = folder.ReadView();
  snapshot.readable = written.status();
  if (written.ok()) {
    snapshot.view = *std::move(written);
  } else {
    snapshot.trouble = written.status().message();
  }
  snapshot.view.name = folder.name();
  if (!IsFinal(snapshot.view.state)) AddFromLedger(platform, folder, snapshot);
  snapshot.liveness = IsFinal(snapshot.view.state) ? Liveness::kEnded : Liveness::kInterrupted;
  if (snapshot.liveness == Liveness::kInterrupted && snapshot.view.reason.empty()) {
    snapshot.view.reason = WhyInterrupted(platform, folder);
  }
  return snapshot;
}

Result<std::vector<JobSnapshot>> TakeAllSnapshots(Platform& platform) {
  const JobStore store(platform.home);
  EDL_ASSIGN_OR_RETURN(const std::vector<std::string> names, store.List());
  std::vector<JobSnapshot> snapshots;
  for (const std::string& name : names) {
    const Result<JobFolder> folder = store.Find(name);
    if (!folder.ok()) continue;  // deleted meanwhile
    Result<JobSnapshot> snapshot = TakeSnapshot(platform, *folder);
    if (!snapshot.ok()) {
      snapshot = JobSnapshot{.view = {.name = name},
                             .liveness = Liveness::kInterrupted,
                             .trouble = snapshot.status().message()};
    }
    snapshots.push_back(*std::move(snapshot));
  }
  return snapshots;
}

}  // namespace edl::cli
