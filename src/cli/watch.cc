#include "cli/watch.h"

#include <csignal>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/format.h"
#include "cli/live_line.h"
#include "cli/summary.h"

namespace edl::cli {
namespace {

constexpr int kPollMillis = 1000;

// The exit code for a job that ended so.
int ExitCodeOf(const JobSnapshot& snapshot) {
  if (snapshot.liveness == Liveness::kInterrupted) return kExitFailed;
  if (snapshot.view.state == job::JobState::kSucceeded) return kExitOk;
  return snapshot.view.state == job::JobState::kStopped ? kExitStopped : kExitFailed;
}

class Watcher {
 public:
  Watcher(Platform& platform, const std::string& name,
          const std::function<Result<JobSnapshot>()>& snapshot)
      : platform_(platform), name_(name), snapshot_(snapshot), line_(platform) {}

  int Watch() {
    const Result<FileDescriptor> signals = platform_.catch_signals();
    if (!signals.ok()) return Fail(platform_, signals.status());
    while (true) {
      const Result<JobSnapshot> snapshot = snapshot_();
      const Code code = snapshot.status().code();
      // Another call would fail in the same way.
      if (code == Code::kNotFound || code == Code::kUnauthenticated ||
          code == Code::kPermissionDenied) {
        line_.Clear();
        return Fail(platform_, snapshot.status());
      }
      ReportTrouble(snapshot.ok() ? snapshot->trouble : snapshot.status().message());
      if (snapshot.ok()) line_.Show(snapshot->view);
      if (snapshot.ok() && snapshot->liveness != Liveness::kRunning) return End(*snapshot);
      if (!platform_.out.good()) return kExitFailed;  // the reader of the output has exited
      pollfd waits{signals->get(), POLLIN, 0};
      if (poll(&waits, 1, kPollMillis) > 0) return Leave(signals->get());
    }
  }

 private:
  // Prints each trouble once.
  void ReportTrouble(const std::string& trouble) {
    if (trouble != trouble_ && !trouble.empty()) line_.Print(EscapeControlChars(trouble));
    trouble_ = trouble;
  }

  int End(const JobSnapshot& snapshot) {
    line_.Clear();
    platform_.out << Summary(snapshot, platform_.terminal.color);
    platform_.out.flush();
    return ExitCodeOf(snapshot);
  }

  int Leave(int signals) {
    signalfd_siginfo taken{};
    const bool known = read(signals, &taken, sizeof taken) == sizeof taken;
    line_.Print(fmt::format(
        "job {0} keeps running; see `elasticdl status {0}`, or stop it with `elasticdl stop "
        "{0}`",
        name_));
    return kExitSignalBase + (known ? static_cast<int>(taken.ssi_signo) : SIGINT);
  }

  Platform& platform_;
  const std::string& name_;
  const std::function<Result<JobSnapshot>()>& snapshot_;
  LiveLine line_;
  std::string trouble_;  // printed last
};

}  // namespace

int WatchJob(Platform& platform, const std::string& name,
             const std::function<Result<JobSnapshot>()>& snapshot) {
  return Watcher(platform, name, snapshot).Watch();
}

}  // namespace edl::cli
