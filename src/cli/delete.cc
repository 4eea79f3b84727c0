#include "cli/job_location.h"
#include "cli/print_result.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

Status Delete(Platform& platform, const JobLocation& location) {
  EDL_ASSIGN_OR_RETURN(const JobSnapshot snapshot, TakeSnapshot(platform, location));
  if (snapshot.liveness == Liveness::kRunning) {
    return FailedPrecondition("job {0} is running; stop it first with `elasticdl stop {0}`",
                              location.name);
  }
  if (location.folder.has_value()) return JobStore(platform.home).Remove(*location.folder);
  return location.cluster->Delete(location.name);
}

}  // namespace

int DeleteJob(Platform& platform, const FlagValues& flags) {
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  if (Status status = Delete(platform, *location); !status.ok()) return Fail(platform, status);
  return PrintResult(platform, flags, {{"job", location->name}, {"state", "deleted"}},
                     fmt::format("job {} is deleted", location->name));
}

}  // namespace edl::cli
