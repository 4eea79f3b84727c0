#include <chrono>

#include "cli/format.h"
#include "cli/job_location.h"
#include "cli/job_master.h"
#include "cli/print_result.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

Status Scale(Platform& platform, const JobFolder& folder, int num_workers) {
  EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
  if (!running) {
    return FailedPrecondition("job {} is not running; only a running job can be scaled",
                              folder.name());
  }
  EDL_ASSIGN_OR_RETURN(const auto master, ClientOfMaster(folder));
  return master->Scale(num_workers, 10s)
      .Within(fmt::format("job {} was not scaled", folder.name()));
}

Status ScaleOnCluster(const JobLocation& location, int num_workers) {
  EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, location.cluster->Find(location.name));
  if (!job.running) {
    return FailedPrecondition("job {} is not running; only a running job can be scaled",
                              location.name);
  }
  if (num_workers < 1) {
    return InvalidArgument(
        "--num_workers={}: at least 1 is needed; `elasticdl stop {}` ends the job", num_workers,
        location.name);
  }
  return location.cluster->Scale(location.name, num_workers)
      .Within(fmt::format("job {} was not scaled", location.name));
}

}  // namespace

int ScaleJob(Platform& platform, const FlagValues& flags) {
  if (!flags.given("num_workers")) {
    return Fail(platform, InvalidArgument("--num_workers is missing: elasticdl scale {} "
                                          "--num_workers=N",
                                          flags.arguments().front()));
  }
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  const int64_t num_workers = flags.Int("num_workers");
  const Status status = location->folder.has_value()
                            ? Scale(platform, *location->folder, static_cast<int>(num_workers))
                            : ScaleOnCluster(*location, static_cast<int>(num_workers));
  if (!status.ok()) return Fail(platform, status);
  return PrintResult(platform, flags, {{"job", location->name}, {"num_workers", num_workers}},
                     fmt::format("job {} is being scaled to {}", location->name,
                                 Plural(num_workers, "worker", "workers")));
}

}  // namespace edl::cli
