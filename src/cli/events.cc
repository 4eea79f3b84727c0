#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/format.h"
#include "cli/job_location.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

std::string AsText(const std::vector<backend::ClusterEvent>& events) {
  if (events.empty())
    return "The cluster has no events of this job (it deletes them after some time).\n";
  std::vector<std::vector<std::string>> rows = {
      {"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}};
  for (const backend::ClusterEvent& event : events) {
    const std::string times = event.count > 1 ? fmt::format(" (x{})", event.count) : "";
    rows.push_back({event.when, event.type, event.reason, event.object,
                    EscapeControlChars(event.message) + times});
  }
  return Columns(rows);
}

std::string AsJson(const std::vector<backend::ClusterEvent>& events) {
  nlohmann::json out = nlohmann::json::array();
  for (const backend::ClusterEvent& event : events) {
    out.push_back({{"when", event.when},
                   {"type", event.type},
                   {"reason", event.reason},
                   {"object", event.object},
                   {"message", event.message},
                   {"count", event.count}});
  }
  return Dump(out, 2) + "\n";
}

}  // namespace

int ShowEvents(Platform& platform, const FlagValues& flags) {
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  if (location->folder.has_value()) {
    return Fail(platform,
                FailedPrecondition("job {0} is on this machine, which records no events; see "
                                   "`elasticdl logs {0} master`",
                                   location->name));
  }
  const auto events = location->cluster->Events(location->name);
  if (!events.ok()) return Fail(platform, events.status());
  platform.out << (flags.String("output") == "json" ? AsJson(*events) : AsText(*events));
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
