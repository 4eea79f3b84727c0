#include <chrono>

#include <poll.h>

#include "cli/format.h"
#include "cli/place.h"
#include "cli/verbs.h"
#include "client/master_client.h"
#include "job/names.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAskDeadline = 3s;
// What a master gets to stop its replicas before the agent is told to end everything.
constexpr Duration kPatience = 30s;
constexpr int kPollMillis = 20;
constexpr int kClusterPollMillis = 300;

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

Status StopOnCluster(Platform& platform, const Place& place) {
  EDL_RETURN_IF_ERROR(place.cluster->Stop(place.name, "stopped by the user (elasticdl stop)"));
  const Time deadline = platform.clock.Now() + 2 * kPatience;
  while (platform.clock.Now() < deadline) {
    EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, place.cluster->Find(place.name));
    if (!job.running) return Ok();
    poll(nullptr, 0, kClusterPollMillis);
  }
  return DeadlineExceeded(
      "job {0} still runs after {1}; see `elasticdl status {0}`, or end it with `kubectl delete "
      "pod {2}`",
      place.name, Span(std::chrono::duration<double>(2 * kPatience).count()),
      job::MasterName(place.name));
}

}  // namespace

int StopJob(Platform& platform, const FlagValues& flags) {
  const Result<Place> place = FindJob(platform, flags, flags.arguments().front());
  if (!place.ok()) return Fail(platform, place.status());
  const Result<Look> before = LookAt(platform, *place);
  if (!before.ok()) return Fail(platform, before.status());
  if (before->standing != Standing::kRunning) {
    platform.out << fmt::format("job {} does not run: {}\n", place->name, before->state());
    platform.out.flush();
    return kExitOk;
  }
  const Status stopped =
      place->folder.has_value() ? Stop(platform, *place->folder) : StopOnCluster(platform, *place);
  if (!stopped.ok()) return Fail(platform, stopped);
  const Result<Look> after = LookAt(platform, *place);
  platform.out << fmt::format("job {}: {}\n", place->name, after.ok() ? after->state() : "ended");
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
