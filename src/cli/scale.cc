#include <chrono>

#include "cli/format.h"
#include "cli/job_store.h"
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

}  // namespace

int ScaleJob(Platform& platform, const FlagValues& flags) {
  if (!flags.given("num_workers")) {
    return Fail(platform, InvalidArgument("say how many workers there shall be: elasticdl scale {} "
                                          "--num_workers=N",
                                          flags.arguments().front()));
  }
  const Result<JobFolder> folder = JobStore(platform.home).Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const int64_t num_workers = flags.Int("num_workers");
  const Status status = Scale(platform, *folder, static_cast<int>(num_workers));
  if (!status.ok()) return Fail(platform, status);
  platform.out << fmt::format("job {} shall have {}\n", folder->name(),
                              Plural(num_workers, "worker", "workers"));
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
