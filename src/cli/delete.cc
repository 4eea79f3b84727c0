#include "cli/answer.h"
#include "cli/place.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

Status Delete(Platform& platform, const Place& place) {
  EDL_ASSIGN_OR_RETURN(const Look look, LookAt(platform, place));
  if (look.standing == Standing::kRunning) {
    return FailedPrecondition("job {0} is running; stop it first with `elasticdl stop {0}`",
                              place.name);
  }
  if (place.folder.has_value()) return JobStore(platform.home).Remove(*place.folder);
  return place.cluster->Delete(place.name);
}

}  // namespace

int DeleteJob(Platform& platform, const FlagValues& flags) {
  const Result<Place> place = FindJob(platform, flags, flags.arguments().front());
  if (!place.ok()) return Fail(platform, place.status());
  if (Status status = Delete(platform, *place); !status.ok()) return Fail(platform, status);
  return Answer(platform, flags, {{"job", place->name}, {"state", "deleted"}},
                fmt::format("job {} is deleted", place->name));
}

}  // namespace edl::cli
