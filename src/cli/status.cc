#include <chrono>

#include "cli/look.h"
#include "cli/summary.h"
#include "cli/verbs.h"

namespace edl::cli {

int ShowStatus(Platform& platform, const FlagValues& flags) {
  if (flags.arguments().empty()) return ListJobs(platform, flags);
  const Result<JobFolder> folder = JobStore(platform.home).Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const Result<Look> look = LookAt(platform, *folder);
  if (!look.ok()) return Fail(platform, look.status());
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
