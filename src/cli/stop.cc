#include <chrono>

#include <poll.h>

#include "cli/format.h"
#include "cli/job_location.h"
#include "cli/job_master.h"
#include "cli/print_result.h"
#include "cli/verbs.h"
#include "job/names.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kCallDeadline = 3s;
// How long a master may take to stop its replicas before the agent kills all processes.
constexpr Duration kTimeout = 30s;
// How long a job may take to end before its agent process is checked.
constexpr Duration kAgentTimeout = 1s;
constexpr int kPollMillis = 20;
constexpr int kClusterPollMillis = 300;

Status AskMasterToStop(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const auto master, ClientOfMaster(folder));
  return master->Stop("stopped by the user (elasticdl stop)", kCallDeadline);
}

// FailedPrecondition: the agent is stopped (SIGSTOP), so that it can neither end the job nor
// answer.
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

// Makes the agent end all processes of the job. Ok if the agent has already exited.
Status ShutDown(Platform& platform, const JobFolder& folder) {
  EDL_RETURN_IF_ERROR(CheckAgent(platform, folder));
  Status status = platform.local.shutdown(folder.path());
  return status.code() == Code::kNotFound ? Ok() : status;
}

Status Stop(Platform& platform, const JobFolder& folder) {
  // If the master does not answer, the agent ends it with all other processes.
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

// Deletes the pods that a master left behind when it ended.
int CleanUp(Platform& platform, const FlagValues& flags, const JobLocation& location,
            const JobSnapshot& snapshot) {
  const Result<int> left = location.cluster->CountRunningPods(location.name);
  if (!left.ok()) return Fail(platform, left.status());
  std::string said = fmt::format("job {} is not running: {}", location.name, snapshot.state());
  if (*left > 0) {
    const Status cleaned =
        location.cluster->Stop(location.name, "stopped by the user (elasticdl stop)");
    if (!cleaned.ok()) return Fail(platform, cleaned);
    said += fmt::format("\n{} that its master left behind {} being deleted",
                        Plural(*left, "pod", "pods"), *left == 1 ? "is" : "are");
  }
  return PrintResult(
      platform, flags,
      {{"job", location.name}, {"state", snapshot.state()}, {"pods_left_behind", *left}}, said);
}

}  // namespace

int StopJob(Platform& platform, const FlagValues& flags) {
  const Result<JobLocation> location = FindJob(platform, flags, flags.arguments().front());
  if (!location.ok()) return Fail(platform, location.status());
  const Result<JobSnapshot> before = TakeSnapshot(platform, *location);
  if (!before.ok()) return Fail(platform, before.status());
  if (before->liveness != Liveness::kRunning) {
    if (!location->folder.has_value()) return CleanUp(platform, flags, *location, *before);
    return PrintResult(platform, flags, {{"job", location->name}, {"state", before->state()}},
                       fmt::format("job {} is not running: {}", location->name, before->state()));
  }
  const Status stopped = location->folder.has_value() ? Stop(platform, *location->folder)
                                                      : StopOnCluster(platform, *location);
  if (!stopped.ok()) return Fail(platform, stopped);
  const Result<JobSnapshot> after = TakeSnapshot(platform, *location);
  const std::string state = after.ok() ? after->state() : "ended";
  return PrintResult(platform, flags, {{"job", location->name}, {"state", state}},
                     fmt::format("job {}: {}", location->name, state));
}

}  // namespace edl::cli
