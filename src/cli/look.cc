#include "cli/look.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "cli/masters_last_word.h"
#include "client/master_client.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

Result<job::JobView> AskMaster(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const std::string address, folder.ReadAddress());
  EDL_ASSIGN_OR_RETURN(std::string token, folder.ReadToken());
  return client::MasterClient(address, std::move(token)).GetJob(3s);
}

void AddFromLedger(Platform& platform, const JobFolder& folder, Look& look) {
  const Result<job::JobView> ledger = platform.local.read_ledger_view(folder.ledger());
  if (!ledger.ok()) {
    // A job that never ran has none.
    if (ledger.status().code() != Code::kNotFound && look.trouble.empty()) {
      look.trouble = "its ledger cannot be read: " + ledger.status().message();
    }
    return;
  }
  if (!look.readable.ok()) {
    look.view.state = ledger->state;
    look.view.reason = ledger->reason;
    look.view.started_at = ledger->started_at;
    look.view.ended_at = ledger->ended_at;
    look.view.success_rule = ledger->success_rule;
  }
  // A ledger that knows less than the status is damaged; `train --resume` says so.
  if (ledger->version < look.view.version) return;
  look.view.version = ledger->version;
  look.view.datasets = ledger->datasets;
}

std::string WhyInterrupted(Platform& platform, const JobFolder& folder) {
  const Result<JobFolder::End> end = folder.ReadEnd();
  if (!end.ok()) return "its agent was killed, or the machine went down";
  if (end->exit_code == kExitUsage) {
    if (std::string word = MastersLastWord(platform, folder); !word.empty()) return word;
  }
  return end->reason;
}

}  // namespace

std::string Look::state() const {
  return standing == Standing::kInterrupted ? "interrupted" : std::string(NameOf(view.state));
}

std::string Look::ToJson() const {
  nlohmann::json out = nlohmann::json::parse(view.ToJson());
  out["state"] = state();
  if (standing == Standing::kInterrupted) {
    // What a master wrote last is not what is: nothing of an interrupted job runs.
    for (nlohmann::json& replica : out["replicas"]) {
      if (replica["state"] == "running" || replica["state"] == "pending") {
        replica["state"] = "interrupted";
      }
    }
  }
  if (!trouble.empty()) out["trouble"] = trouble;
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Look> LookAt(Platform& platform, const JobFolder& folder) {
  Look look;
  EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
  if (running) {
    look.standing = Standing::kRunning;
    Result<job::JobView> view = AskMaster(folder);
    if (view.ok()) {
      look.view = *std::move(view);
      return look;
    }
    look.trouble = "the master does not answer now: " + view.status().message();
    Result<job::JobView> written = folder.ReadView();
    look.readable = written.status();
    if (written.ok()) look.view = *std::move(written);
    look.view.name = folder.name();
    return look;
  }
  return ReadLook(platform, folder);
}

Look ReadLook(Platform& platform, const JobFolder& folder) {
  Look look;
  Result<job::JobView> written = folder.ReadView();
  look.readable = written.status();
  if (written.ok()) {
    look.view = *std::move(written);
  } else {
    look.trouble = written.status().message();
  }
  look.view.name = folder.name();
  if (!IsFinal(look.view.state)) AddFromLedger(platform, folder, look);
  look.standing = IsFinal(look.view.state) ? Standing::kEnded : Standing::kInterrupted;
  if (look.standing == Standing::kInterrupted && look.view.reason.empty()) {
    look.view.reason = WhyInterrupted(platform, folder);
  }
  return look;
}

Result<std::vector<Look>> LookAtAll(Platform& platform) {
  const JobStore store(platform.home);
  EDL_ASSIGN_OR_RETURN(const std::vector<std::string> names, store.List());
  std::vector<Look> looks;
  for (const std::string& name : names) {
    const Result<JobFolder> folder = store.Find(name);
    if (!folder.ok()) continue;  // deleted meanwhile
    Result<Look> look = LookAt(platform, *folder);
    if (!look.ok()) {
      look = Look{.view = {.name = name},
                  .standing = Standing::kInterrupted,
                  .trouble = look.status().message()};
    }
    looks.push_back(*std::move(look));
  }
  return looks;
}

}  // namespace edl::cli
