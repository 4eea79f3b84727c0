#include <chrono>

#include "cli/job_location.h"
#include "cli/summary.h"
#include "cli/verbs.h"
#include "cli/watch.h"

namespace edl::cli {

int ShowStatus(Platform& platform, const FlagValues& flags) {
  if (flags.arguments().empty()) return ListJobs(platform, flags);
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  if (flags.Bool("follow")) {
    return WatchJob(platform, location->name, [&] { return TakeSnapshot(platform, *location); });
  }
  const Result<JobSnapshot> snapshot = TakeSnapshot(platform, *location);
  if (!snapshot.ok()) return Fail(platform, snapshot.status());
  if (snapshot->readable.code() == Code::kFailedPrecondition)
    return Fail(platform, snapshot->readable);
  if (flags.String("output") == "json") {
    platform.out << snapshot->ToJson() << "\n";
  } else {
    const double now =
        std::chrono::duration<double>(platform.clock.WallNow().time_since_epoch()).count();
    platform.out << StatusText(*snapshot, now, platform.terminal.color);
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
