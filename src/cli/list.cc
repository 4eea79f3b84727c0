#include <nlohmann/json.hpp>

#include "cli/format.h"
#include "cli/look.h"
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

std::string AsText(const std::vector<Look>& looks) {
  if (looks.empty()) return "There are no jobs.\n";
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "RECORDS", "STARTED", "REPLICAS"}};
  for (const Look& look : looks) {
    std::string last = look.standing == Standing::kRunning ? ReplicasByState(look.view)
                                                           : Harmless(look.view.reason);
    if (!look.trouble.empty()) last = Harmless(look.trouble);
    rows.push_back({look.view.name, look.state(), RecordsText(look.view),
                    When(look.view.started_at), std::move(last)});
  }
  return Columns(rows);
}

}  // namespace

int ListJobs(Platform& platform, const FlagValues& flags) {
  const Result<std::vector<Look>> looks = LookAtAll(platform);
  if (!looks.ok()) return Fail(platform, looks.status());
  if (flags.String("output") == "json") {
    nlohmann::json out = nlohmann::json::array();
    for (const Look& look : *looks) out.push_back(nlohmann::json::parse(look.ToJson()));
    platform.out << out.dump(2) << "\n";
  } else {
    platform.out << AsText(*looks);
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
