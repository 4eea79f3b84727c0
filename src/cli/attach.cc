#include "cli/attach.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/format.h"
#include "cli/job_snapshot.h"
#include "cli/last_log_message.h"
#include "cli/live_line.h"
#include "cli/summary.h"
#include "client/master_client.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

// A starting job is polled more often, so that a short job is seen at all.
constexpr Duration kStartPhase = 3s;
constexpr Duration kStartInterval = 50ms;
constexpr Duration kLiveInterval = 250ms;
constexpr Duration kInterval = 500ms;
// The deadline of a call to the master. A signal is handled after at most this time.
constexpr std::chrono::milliseconds kCallDeadline = 400ms;
constexpr Duration kDetachTimeout = 10s;
constexpr Duration kStopTimeout = 15s;

class JobAttachment {
 public:
  JobAttachment(Platform& platform, RunningJob& job, const JobFolder& folder, FolderOrigin origin)
      : platform_(platform), job_(job), folder_(folder), origin_(origin), line_(platform) {
    begin_ = platform_.clock.Now();
    if (Result<job::JobView> view = folder_.ReadView(); view.ok()) line_.set_view(*std::move(view));
  }

  int Run() {
    Result<FileDescriptor> signals = platform_.catch_signals();
    if (!signals.ok()) return Fail(platform_, signals.status());
    Time next_poll = begin_;
    while (!AwaitEvent(signals->get(), next_poll)) {
      const Time now = platform_.clock.Now();
      if (now >= stop_deadline_) Shutdown();
      if (now < next_poll) continue;
      ShowProgress();
      const Duration usual = platform_.terminal.live ? kLiveInterval : kInterval;
      next_poll = platform_.clock.Now() + (now - begin_ < kStartPhase ? kStartInterval : usual);
    }
    return End();
  }

  int Detach() {
    while (platform_.clock.Now() - begin_ < kDetachTimeout) {
      if (AwaitEvent(-1, platform_.clock.Now() + kStartInterval)) return End();
      if (GetView().ok()) break;
    }
    const std::string name = folder_.name();
    platform_.out << fmt::format(
        "ElasticDL job {0} was successfully submitted. It keeps running without this command:\n"
        "  elasticdl status {0}\n  elasticdl logs {0} -f\n  elasticdl stop {0}\n",
        name);
    platform_.out.flush();
    return kExitOk;
  }

 private:
  // Waits for the end of the job, a signal or `until`. Returns true when the job has ended.
  bool AwaitEvent(int signals, Time until) {
    std::array<pollfd, 2> fds = {pollfd{job_.end_fd(), POLLIN, 0}, pollfd{signals, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max<Duration>(until - platform_.clock.Now(), Duration::zero()));
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(left.count()));
    if (ready <= 0) return false;
    if ((fds[1].revents & POLLIN) != 0) TakeSignal(signals);
    return fds[0].revents != 0;
  }

  void TakeSignal(int signals) {
    signalfd_siginfo taken{};
    if (read(signals, &taken, sizeof taken) != sizeof taken) return;
    const bool first = signal_ == 0;
    if (first) signal_ = static_cast<int>(taken.ssi_signo);
    line_.Print(first ? "stopping the job (press Ctrl-C again to kill it)"
                      : "killing every process");
    if (first && RequestStop().ok()) {
      stop_deadline_ = platform_.clock.Now() + kStopTimeout;
      return;
    }
    Shutdown();
    if (!first) Shutdown();
  }

  // Asks the master first, because the master records that a user stopped the job.
  Status RequestStop() {
    if (master_ == nullptr) return Unavailable("the master has not answered yet");
    return master_->Stop("stopped by the user", kCallDeadline);
  }

  void Shutdown() {
    stop_deadline_ = Time::max();
    // NotFound: the job has just ended by itself, which the loop notices.
    if (Status status = job_.Shutdown(); !status.ok() && status.code() != Code::kNotFound) {
      line_.Print("the job could not be stopped: " + status.message());
    }
  }

  Result<job::JobView> GetView() {
    if (master_ == nullptr) {
      EDL_ASSIGN_OR_RETURN(std::string token, folder_.ReadToken());
      // The agent chooses another port if the first one was taken before the master listened on it.
      const Result<std::string> address = folder_.ReadAddress();
      master_ = std::make_unique<client::MasterClient>(
          address.ok() && !address->empty() ? *address : job_.master_address(), std::move(token));
    }
    Result<job::JobView> view = master_->GetJob(kCallDeadline);
    // gRPC waits before it reconnects a refused channel; a new client connects at once.
    if (!view.ok()) master_.reset();
    return view;
  }

  void ShowProgress() {
    const Result<job::JobView> view = GetView();
    if (!view.ok()) return;  // The master is starting or restarting.
    line_.Show(*view);
    if (platform_.out.good() || reported_lost_output_) return;
    reported_lost_output_ = true;
    platform_.err << fmt::format(
        "elasticdl: cannot write the output any more ({0}); job {1} keeps running: see `elasticdl "
        "status {1}`\n",
        std::strerror(errno), folder_.name());
    platform_.err.flush();
  }

  // Whether no replica was ever launched. Only then may the folder be removed.
  bool NoReplicaRan(const job::JobView& view) const {
    if (view.state != job::JobState::kStarting || !view.replicas.empty()) return false;
    const std::vector<std::string> logs = folder_.LogNames();
    return std::all_of(logs.begin(), logs.end(),
                       [](const std::string& log) { return log == "master" || log == "agent"; });
  }

  // The master failed before it launched a replica. A new job is removed.
  int FailToStart(const std::string& why) {
    platform_.err << fmt::format("elasticdl: job {} could not start: {}\n", folder_.name(), why);
    platform_.err.flush();
    if (origin_ == FolderOrigin::kCreated) {
      // A failure is ignored: the next `train` of this name reports the folder.
      (void)JobStore(folder_.path().parent_path().parent_path()).Remove(folder_);
    }
    return kExitUsage;
  }

  int End() {
    line_.Clear();
    platform_.out.flush();
    Result<JobEnd> end = job_.Wait();
    JobSnapshot snapshot = ReadSnapshot(platform_, folder_);
    if (snapshot.liveness == Liveness::kInterrupted) {
      std::string why = end.ok() ? end->reason : end.status().message();
      if (end.ok() && end->exit_code == kExitUsage) {
        const std::string message = LastLogMessage(platform_, folder_);
        if (!message.empty()) why = message;
        if (NoReplicaRan(snapshot.view))
          return FailToStart(why.empty() ? "the master's log is empty" : why);
      }
      if (!why.empty()) snapshot.view.reason = why;
    }
    platform_.out << Summary(snapshot, platform_.terminal.color);
    platform_.out.flush();
    return ExitCode(end, snapshot);
  }

  int ExitCode(const Result<JobEnd>& end, const JobSnapshot& snapshot) const {
    const bool succeeded =
        snapshot.liveness == Liveness::kEnded && snapshot.view.state == job::JobState::kSucceeded;
    if (signal_ != 0 && !succeeded) return kExitSignalBase + signal_;
    if (!end.ok()) return kExitFailed;
    if (end->exit_code == kExitOk) return succeeded ? kExitOk : kExitFailed;
    return end->exit_code;
  }

  Platform& platform_;
  RunningJob& job_;
  const JobFolder& folder_;
  const FolderOrigin origin_;

  LiveLine line_;
  Time begin_;
  std::unique_ptr<client::MasterClient> master_;  // null until the job's processes are forked
  int signal_ = 0;                                // the first signal; 0: none
  bool reported_lost_output_ = false;
  Time stop_deadline_ = Time::max();  // when a master that was asked to stop is shut down
};

}  // namespace

int AttachToJob(Platform& platform, RunningJob& job, const JobFolder& folder, FolderOrigin origin) {
  return JobAttachment(platform, job, folder, origin).Run();
}

int DetachFromJob(Platform& platform, RunningJob& job, const JobFolder& folder,
                  FolderOrigin origin) {
  return JobAttachment(platform, job, folder, origin).Detach();
}

}  // namespace edl::cli
