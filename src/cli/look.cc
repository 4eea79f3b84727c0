#include "cli/look.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "client/master_client.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

Result<job::JobView> AskMaster(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const std::string address, folder.ReadAddress());
  EDL_ASSIGN_OR_RETURN(std::string token, folder.ReadToken());
  return client::MasterClient(address, std::move(token)).GetJob(3s);
}

}  // namespace

std::string Look::state() const {
  return standing == Standing::kInterrupted ? "interrupted" : std::string(NameOf(view.state));
}

std::string Look::ToJson() const {
  nlohmann::json out = nlohmann::json::parse(view.ToJson());
  out["state"] = state();
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
  }
  EDL_ASSIGN_OR_RETURN(look.view, folder.ReadView());
  if (!running) {
    look.standing = IsFinal(look.view.state) ? Standing::kEnded : Standing::kInterrupted;
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
