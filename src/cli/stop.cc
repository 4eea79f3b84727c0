#include <chrono>

#include <poll.h>

#include "cli/answer.h"
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
// How long a job may take to end before its agent is looked at.
constexpr Duration kAgentPatience = 1s;
constexpr int kPollMillis = 20;
constexpr int kClusterPollMillis = 300;

Status AskMaster(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const std::string address, folder.ReadAddress());
  EDL_ASSIGN_OR_RETURN(std::string token, folder.ReadToken());
  return client::MasterClient(address, std::move(token))
      .Stop("stopped by the user (elasticdl stop)", kAskDeadline);
}

// An agent that is stopped can neither end the job nor answer. FailedPrecondition says what to do.
Status CheckAgent(Platform& platform, const JobFolder& folder) {
  const Result<LocalJobs::Agent> agent = platform.local.find_agent(folder.path());
  if (!agent.ok() || !agent->stopped) return Ok();
  return FailedPrecondition(
      "job {0} cannot end: its agent, process {1}, is stopped (SIGSTOP); let it continue with "
      "`kill -CONT {1}`, or end the agent and all processes of the job with `kill -KILL {1}`",
      folder.name(), agent->process_id);
}

Result<bool> HasEnded(Platform& platform, const JobFolder& folder, Duration patience) {
  const Time deadline = platform.clock.Now() + patience;
  Time check_agent = platform.clock.Now() + kAgentPatience;
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
    if (!running) return true;
    const Time now = platform.clock.Now();
    if (now >= deadline) return false;
    if (now >= check_agent) {
      EDL_RETURN_IF_ERROR(CheckAgent(platform, folder));
      check_agent = now + kAgentPatience;
    }
    poll(nullptr, 0, kPollMillis);
  }
}

// Has the agent end everything. Ok if it is gone by now.
Status ShutDown(Platform& platform, const JobFolder& folder) {
  EDL_RETURN_IF_ERROR(CheckAgent(platform, folder));
  Status told = platform.local.shutdown(folder.path());
  return told.code() == Code::kNotFound ? Ok() : told;
}

Status Stop(Platform& platform, const JobFolder& folder) {
  // A master that does not answer is ended with all the rest by the agent.
  if (!AskMaster(folder).ok()) EDL_RETURN_IF_ERROR(ShutDown(platform, folder));
  EDL_ASSIGN_OR_RETURN(const bool ended, HasEnded(platform, folder, kPatience));
  if (ended) return Ok();
  platform.err << fmt::format("elasticdl: job {} still runs after {}: ending its processes\n",
                              folder.name(),
                              Span(std::chrono::duration<double>(kPatience).count()));
  platform.err.flush();
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
      "pod {2}` (with --force --grace-period=0 where its node is lost)",
      place.name, Span(std::chrono::duration<double>(2 * kPatience).count()),
      job::MasterName(place.name));
}

// Ends what a master that does not run any more left behind.
int CleanUp(Platform& platform, const FlagValues& flags, const Place& place, const Look& look) {
  const Result<int> left = place.cluster->CountRunningPods(place.name);
  if (!left.ok()) return Fail(platform, left.status());
  std::string said = fmt::format("job {} does not run: {}", place.name, look.state());
  if (*left > 0) {
    const Status cleaned = place.cluster->Stop(place.name, "stopped by the user (elasticdl stop)");
    if (!cleaned.ok()) return Fail(platform, cleaned);
    said += fmt::format("\n{} that its master left behind {} told to end",
                        Plural(*left, "pod", "pods"), *left == 1 ? "is" : "are");
  }
  return Answer(platform, flags,
                {{"job", place.name}, {"state", look.state()}, {"pods_left_behind", *left}}, said);
}

}  // namespace

int StopJob(Platform& platform, const FlagValues& flags) {
  const Result<Place> place = FindJob(platform, flags, flags.arguments().front());
  if (!place.ok()) return Fail(platform, place.status());
  const Result<Look> before = LookAt(platform, *place);
  if (!before.ok()) return Fail(platform, before.status());
  if (before->standing != Standing::kRunning) {
    if (!place->folder.has_value()) return CleanUp(platform, flags, *place, *before);
    return Answer(platform, flags, {{"job", place->name}, {"state", before->state()}},
                  fmt::format("job {} does not run: {}", place->name, before->state()));
  }
  const Status stopped =
      place->folder.has_value() ? Stop(platform, *place->folder) : StopOnCluster(platform, *place);
  if (!stopped.ok()) return Fail(platform, stopped);
  const Result<Look> after = LookAt(platform, *place);
  const std::string state = after.ok() ? after->state() : "ended";
  return Answer(platform, flags, {{"job", place->name}, {"state", state}},
                fmt::format("job {}: {}", place->name, state));
}

}  // namespace edl::cli
