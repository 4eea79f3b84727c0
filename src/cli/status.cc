#include <chrono>

#include "cli/place.h"
#include "cli/summary.h"
#include "cli/verbs.h"
#include "cli/watch.h"

namespace edl::cli {

int ShowStatus(Platform& platform, const FlagValues& flags) {
  if (flags.arguments().empty()) return ListJobs(platform, flags);
  const Result<Place> place = FindJob(platform, flags, flags.arguments().front());
  if (!place.ok()) return Fail(platform, place.status());
  if (flags.Bool("follow")) {
    return WatchJob(platform, place->name, [&] { return LookAt(platform, *place); });
  }
  const Result<Look> look = LookAt(platform, *place);
  if (!look.ok()) return Fail(platform, look.status());
  if (look->readable.code() == Code::kFailedPrecondition) return Fail(platform, look->readable);
  if (flags.String("output") == "json") {
    platform.out << look->ToJson() << "\n";
  } else {
    const double now =
        std::chrono::duration<double>(platform.clock.WallNow().time_since_epoch()).count();
    platform.out << StatusText(*look, now,
                               platform.terminal.color ? UseColor::kYes : UseColor::kNo);
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
