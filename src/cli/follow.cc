#include "cli/follow.h"

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

// A job is looked at closely while it starts: a short one is over before anything slower sees it.
constexpr Duration kCloseLook = 3s;
constexpr Duration kCloseInterval = 50ms;
constexpr Duration kLiveInterval = 250ms;
constexpr Duration kInterval = 500ms;
// How long a signal may wait behind a master that does not answer.
constexpr std::chrono::milliseconds kAskDeadline = 400ms;
constexpr Duration kDetachTimeout = 10s;
constexpr Duration kStopTimeout = 15s;

class Follower {
 public:
  Follower(Platform& platform, RunningJob& job, const JobFolder& folder, Folder made)
      : platform_(platform), job_(job), folder_(folder), made_(made), line_(platform) {
    begin_ = platform_.clock.Now();
    if (Result<job::JobView> view = folder_.ReadView(); view.ok()) line_.set_view(*std::move(view));
  }

  int Follow() {
    Result<FileDescriptor> signals = platform_.catch_signals();
    if (!signals.ok()) return Fail(platform_, signals.status());
    Time next_look = begin_;
    while (!AwaitEvent(signals->get(), next_look)) {
      const Time now = platform_.clock.Now();
      if (now >= stop_deadline_) Shutdown();
      if (now < next_look) continue;
      LookNow();
      const Duration usual = platform_.terminal.live ? kLiveInterval : kInterval;
      next_look = platform_.clock.Now() + (now - begin_ < kCloseLook ? kCloseInterval : usual);
    }
    return End();
  }

  int LeaveRunning() {
    while (platform_.clock.Now() - begin_ < kDetachTimeout) {
      if (AwaitEvent(-1, platform_.clock.Now() + kCloseInterval)) return End();
      if (Ask().ok()) break;
    }
    const std::string name = folder_.name();
    platform_.out << fmt::format(
        "ElasticDL job {0} was successfully submitted. It runs on by itself:\n"
        "  elasticdl status {0}\n  elasticdl logs {0} -f\n  elasticdl stop {0}\n",
        name);
    platform_.out.flush();
    return kExitOk;
  }

 private:
  // Waits for the job's end, a signal or `until`. True: the job has ended.
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
    line_.Print(first ? "stopping the job (once more: at once)" : "ending every process at once");
    if (first && AskToStop().ok()) {
      stop_deadline_ = platform_.clock.Now() + kStopTimeout;
      return;
    }
    Shutdown();
    if (!first) Shutdown();
  }

  // A master that is asked writes down that the job was stopped.
  Status AskToStop() {
    if (master_ == nullptr) return Unavailable("the master was not reached yet");
    return master_->Stop("stopped by the user", kAskDeadline);
  }

  void Shutdown() {
    stop_deadline_ = Time::max();
    // A job that has just ended by itself has nothing to shut down; the loop sees its end.
    if (Status status = job_.Shutdown(); !status.ok() && status.code() != Code::kNotFound) {
      line_.Print("the job could not be told to stop: " + status.message());
    }
  }

  Result<job::JobView> Ask() {
    if (master_ == nullptr) {
      EDL_ASSIGN_OR_RETURN(std::string token, folder_.ReadToken());
      // The agent chooses another port when the first one was taken before the master could listen.
      const Result<std::string> address = folder_.ReadAddress();
      master_ = std::make_unique<client::MasterClient>(
          address.ok() && !address->empty() ? *address : job_.master_address(), std::move(token));
    }
    Result<job::JobView> view = master_->GetJob(kAskDeadline);
    // A refused connection is not tried again for a while; a new client tries at once.
    if (!view.ok()) master_.reset();
    return view;
  }

  void LookNow() {
    const Result<job::JobView> view = Ask();
    if (!view.ok()) return;  // It is starting, or starting again; the agent watches over it.
    line_.Show(*view);
    if (platform_.out.good() || told_that_output_ended_) return;
    told_that_output_ended_ = true;
    platform_.err << fmt::format(
        "elasticdl: the output cannot be written any more ({0}); job {1} goes on: see `elasticdl "
        "status {1}`\n",
        std::strerror(errno), folder_.name());
    platform_.err.flush();
  }

  // Whether no replica was ever launched: only then is there nothing to lose.
  bool NothingRan(const job::JobView& view) const {
    if (view.state != job::JobState::kStarting || !view.replicas.empty()) return false;
    const std::vector<std::string> logs = folder_.LogNames();
    return std::all_of(logs.begin(), logs.end(),
                       [](const std::string& log) { return log == "master" || log == "agent"; });
  }

  // A new job whose master could not begin leaves nothing behind but the reason.
  int NeverBegan(const std::string& why) {
    platform_.err << fmt::format("elasticdl: job {} could not begin: {}\n", folder_.name(), why);
    platform_.err.flush();
    if (made_ == Folder::kMade) {
      // What cannot be removed is reported by the next `train` of this name.
      (void)JobStore(folder_.path().parent_path().parent_path()).Remove(folder_);
    }
    return kExitUsage;
  }

  int End() {
    line_.Clear();
    platform_.out.flush();
    Result<JobEnd> end = job_.Wait();
    JobSnapshot snapshot = ReadLook(platform_, folder_);
    if (snapshot.liveness == Liveness::kInterrupted) {
      std::string why = end.ok() ? end->reason : end.status().message();
      if (end.ok() && end->exit_code == kExitUsage) {
        const std::string word = LastLogMessage(platform_, folder_);
        if (!word.empty()) why = word;
        if (NothingRan(snapshot.view)) return NeverBegan(why.empty() ? "its log is empty" : why);
      }
      if (!why.empty()) snapshot.view.reason = why;
    }
    platform_.out << Summary(snapshot, platform_.terminal.color ? UseColor::kYes : UseColor::kNo);
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
  const Folder made_;

  LiveLine line_;
  Time begin_;
  std::unique_ptr<client::MasterClient> master_;  // once the job's processes are forked
  int signal_ = 0;                                // the first one
  bool told_that_output_ended_ = false;
  Time stop_deadline_ = Time::max();  // when a master that was asked must have ended
};

}  // namespace

int Follow(Platform& platform, RunningJob& job, const JobFolder& folder, Folder made) {
  return Follower(platform, job, folder, made).Follow();
}

int LeaveRunning(Platform& platform, RunningJob& job, const JobFolder& folder, Folder made) {
  return Follower(platform, job, folder, made).LeaveRunning();
}

}  // namespace edl::cli
