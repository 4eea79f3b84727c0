#include "cli/job_store.h"
#include "cli/verbs.h"

namespace edl::cli {

int DeleteJob(Platform& platform, const FlagValues& flags) {
  const JobStore store(platform.home);
  const Result<JobFolder> folder = store.Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const Result<bool> running = platform.local.is_running(folder->path());
  if (!running.ok()) return Fail(platform, running.status());
  if (*running) {
    return Fail(platform,
                FailedPrecondition("job {0} is running; stop it first with `elasticdl stop {0}`",
                                   folder->name()));
  }
  const std::string name = folder->name();
  if (Status status = store.Remove(*folder); !status.ok()) return Fail(platform, status);
  platform.out << fmt::format("job {} is deleted\n", name);
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
