#include <chrono>

#include <poll.h>

#include "cli/answer.h"
#include "cli/format.h"
#include "cli/job_location.h"
#include "cli/job_master.h"
#include "cli/verbs.h"
#include "job/names.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAskDeadline = 3s;
// What a master gets to stop its replicas before the agent is told to end everything.
constexpr Duration kTimeout = 30s;
// How long a job may take to end before its agent is looked at.
constexpr Duration kAgentTimeout = 1s;
constexpr int kPollMillis = 20;
constexpr int kClusterPollMillis = 300;

Status AskMasterToStop(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const auto master, ClientOfMaster(folder));
  return master->Stop("stopped by the user (elasticdl stop)", kAskDeadline);
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

Result<bool> HasEnded(Platform& platform, const JobFolder& folder, Duration timeout) {
  const Time deadline = platform.clock.Now() + timeout;
  Time check_agent = platform.clock.Now() + kAgentTimeout;
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
    if (!running) return true;
    const Time now = platform.clock.Now();
    if (now >= deadline) return false;
    if (now >= check_agent) {
      EDL_RETURN_IF_ERROR(CheckAgent(platform, folder));
      check_agent = now + kAgentTimeout;
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
  if (!AskMasterToStop(folder).ok()) EDL_RETURN_IF_ERROR(ShutDown(platform, folder));
  EDL_ASSIGN_OR_RETURN(const bool ended, HasEnded(platform, folder, kTimeout));
  if (ended) return Ok();
  platform.err << fmt::format("elasticdl: job {} still runs after {}: ending its processes\n",
                              folder.name(), Span(std::chrono::duration<double>(kTimeout).count()));
  platform.err.flush();
  EDL_RETURN_IF_ERROR(ShutDown(platform, folder));
  EDL_ASSIGN_OR_RETURN(const bool ended_now, HasEnded(platform, folder, kTimeout));
  if (ended_now) return Ok();
  return DeadlineExceeded("job {} still runs after {}; see `elasticdl status {}`", folder.name(),
                          Span(std::chrono::duration<double>(2 * kTimeout).count()), folder.name());
}

Status StopOnCluster(Platform& platform, const JobLocation& location) {
  EDL_RETURN_IF_ERROR(
      location.cluster->Stop(location.name, "stopped by the user (elasticdl stop)"));
  const Time deadline = platform.clock.Now() + 2 * kTimeout;
  while (platform.clock.Now() < deadline) {
    EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, location.cluster->Find(location.name));
    if (!job.running) return Ok();
    poll(nullptr, 0, kClusterPollMillis);
  }
  return DeadlineExceeded(
      "job {0} still runs after {1}; see `elasticdl status {0}`, or end it with `kubectl delete "
      "pod {2}` (with --force --grace-period=0 where its node is lost)",
      location.name, Span(std::chrono::duration<double>(2 * kTimeout).count()),
      job::MasterName(location.name));
}

// Ends what a master that does not run any more left behind.
int CleanUp(Platform& platform, const FlagValues& flags, const JobLocation& location,
            const JobSnapshot& snapshot) {
  const Result<int> left = location.cluster->CountRunningPods(location.name);
  if (!left.ok()) return Fail(platform, left.status());
  std::string said = fmt::format("job {} does not run: {}", location.name, snapshot.state());
  if (*left > 0) {
    const Status cleaned =
        location.cluster->Stop(location.name, "stopped by the user (elasticdl stop)");
    if (!cleaned.ok()) return Fail(platform, cleaned);
    said += fmt::format("\n{} that its master left behind {} told to end",
                        Plural(*left, "pod", "pods"), *left == 1 ? "is" : "are");
  }
  return Answer(platform, flags,
                {{"job", location.name}, {"state", snapshot.state()}, {"pods_left_behind", *left}},
                said);
}

}  // namespace

int StopJob(Platform& platform, const FlagValues& flags) {
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  const Result<JobSnapshot> before = TakeSnapshot(platform, *location);
  if (!before.ok()) return Fail(platform, before.status());
  if (before->liveness != Liveness::kRunning) {
    if (!location->folder.has_value()) return CleanUp(platform, flags, *location, *before);
    return Answer(platform, flags, {{"job", location->name}, {"state", before->state()}},
                  fmt::format("job {} does not run: {}", location->name, before->state()));
  }
  const Status stopped = location->folder.has_value() ? Stop(platform, *location->folder)
                                                      : StopOnCluster(platform, *location);
  if (!stopped.ok()) return Fail(platform, stopped);
  const Result<JobSnapshot> after = TakeSnapshot(platform, *location);
  const std::string state = after.ok() ? after->state() : "ended";
  return Answer(platform, flags, {{"job", location->name}, {"state", state}},
                fmt::format("job {}: {}", location->name, state));
}

}  // namespace edl::cli
