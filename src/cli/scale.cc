#include <chrono>

#include "cli/answer.h"
#include "cli/format.h"
#include "cli/place.h"
#include "cli/verbs.h"
#include "client/master_client.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

Status Scale(Platform& platform, const JobFolder& folder, int num_workers) {
  EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
  if (!running) return FailedPrecondition("job {} does not run", folder.name());
  EDL_ASSIGN_OR_RETURN(const std::string address, folder.ReadAddress());
  EDL_ASSIGN_OR_RETURN(std::string token, folder.ReadToken());
  return client::MasterClient(address, std::move(token))
      .Scale(num_workers, 10s)
      .Within(fmt::format("job {} was not scaled", folder.name()));
}

Status ScaleOnCluster(const Place& place, int num_workers) {
  EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, place.cluster->Find(place.name));
  if (!job.running) return FailedPrecondition("job {} does not run", place.name);
  if (num_workers < 1) {
    return InvalidArgument(
        "--num_workers is {}; it must be at least 1 (`elasticdl stop {}` ends it)", num_workers,
        place.name);
  }
  return place.cluster->Scale(place.name, num_workers)
      .Within(fmt::format("job {} was not scaled", place.name));
}

}  // namespace

int ScaleJob(Platform& platform, const FlagValues& flags) {
  if (!flags.given("num_workers")) {
    return Fail(platform, InvalidArgument("say how many workers there shall be: elasticdl scale {} "
                                          "--num_workers=N",
                                          flags.arguments().front()));
  }
  const Result<Place> place = FindJob(platform, flags, flags.arguments().front());
  if (!place.ok()) return Fail(platform, place.status());
  const int64_t num_workers = flags.Int("num_workers");
  const Status status = place->folder.has_value()
                            ? Scale(platform, *place->folder, static_cast<int>(num_workers))
                            : ScaleOnCluster(*place, static_cast<int>(num_workers));
  if (!status.ok()) return Fail(platform, status);
  return Answer(
      platform, flags, {{"job", place->name}, {"num_workers", num_workers}},
      fmt::format("job {} shall have {}", place->name, Plural(num_workers, "worker", "workers")));
}

}  // namespace edl::cli
