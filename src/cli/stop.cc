#include <chrono>

#include <poll.h>

#include "cli/format.h"
#include "cli/look.h"
#include "cli/verbs.h"
#include "client/master_client.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAskDeadline = 3s;
// What a master gets to stop its replicas before the agent is told to end everything.
constexpr Duration kPatience = 30s;
constexpr int kPollMillis = 20;

Status AskMaster(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const std::string address, folder.ReadAddress());
  EDL_ASSIGN_OR_RETURN(std::string token, folder.ReadToken());
  return client::MasterClient(address, std::move(token))
      .Stop("stopped by the user (elasticdl stop)", kAskDeadline);
}

Result<bool> HasEnded(Platform& platform, const JobFolder& folder, Duration patience) {
  const Time deadline = platform.clock.Now() + patience;
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
    if (!running) return true;
    if (platform.clock.Now() >= deadline) return false;
    poll(nullptr, 0, kPollMillis);
  }
}

// Has the agent end everything. Ok if it is gone by now.
Status ShutDown(Platform& platform, const JobFolder& folder) {
  Status told = platform.local.shutdown(folder.path());
  return told.code() == Code::kNotFound ? Ok() : told;
}

Status Stop(Platform& platform, const JobFolder& folder) {
  // A master that does not answer is ended with all the rest by the agent.
  if (!AskMaster(folder).ok()) EDL_RETURN_IF_ERROR(ShutDown(platform, folder));
  EDL_ASSIGN_OR_RETURN(const bool ended, HasEnded(platform, folder, kPatience));
  if (ended) return Ok();
  EDL_RETURN_IF_ERROR(ShutDown(platform, folder));
  EDL_ASSIGN_OR_RETURN(const bool ended_now, HasEnded(platform, folder, kPatience));
  if (ended_now) return Ok();
  return DeadlineExceeded("job {} still runs after {}; see `elasticdl status {}`", folder.name(),
                          Span(std::chrono::duration<double>(2 * kPatience).count()),
                          folder.name());
}

}  // namespace

int StopJob(Platform& platform, const FlagValues& flags) {
  const Result<JobFolder> folder = JobStore(platform.home).Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const Result<Look> before = LookAt(platform, *folder);
  if (!before.ok()) return Fail(platform, before.status());
  if (before->standing != Standing::kRunning) {
    platform.out << fmt::format("job {} does not run: {}\n", folder->name(), before->state());
    platform.out.flush();
    return kExitOk;
  }
  if (Status status = Stop(platform, *folder); !status.ok()) return Fail(platform, status);
  const Result<Look> after = LookAt(platform, *folder);
  platform.out << fmt::format("job {}: {}\n", folder->name(),
                              after.ok() ? after->state() : "ended");
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
