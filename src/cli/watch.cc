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

constexpr int kLookMillis = 1000;

// What a process ends with whose job ended so.
int ExitCodeOf(const Look& look) {
  if (look.standing == Standing::kInterrupted) return kExitFailed;
  if (look.view.state == job::JobState::kSucceeded) return kExitOk;
  return look.view.state == job::JobState::kStopped ? kExitStopped : kExitFailed;
}

class Watcher {
 public:
  Watcher(Platform& platform, const std::string& name, const std::function<Result<Look>()>& look)
      : platform_(platform), name_(name), look_(look), line_(platform) {}

  int Watch() {
    const Result<FileDescriptor> signals = platform_.catch_signals();
    if (!signals.ok()) return Fail(platform_, signals.status());
    while (true) {
      const Result<Look> look = look_();
      const Code code = look.status().code();
      // Asking again does not change these.
      if (code == Code::kNotFound || code == Code::kUnauthenticated ||
          code == Code::kPermissionDenied) {
        line_.Clear();
        return Fail(platform_, look.status());
      }
      Complain(look.ok() ? look->trouble : look.status().message());
      if (look.ok()) line_.Show(look->view);
      if (look.ok() && look->standing != Standing::kRunning) return End(*look);
      if (!platform_.out.good()) return kExitFailed;  // nobody reads what is shown
      pollfd waits{signals->get(), POLLIN, 0};
      if (poll(&waits, 1, kLookMillis) > 0) return Leave(signals->get());
    }
  }

 private:
  // Once for each trouble.
  void Complain(const std::string& trouble) {
    if (trouble != trouble_ && !trouble.empty()) line_.Print(Harmless(trouble));
    trouble_ = trouble;
  }

  int End(const Look& look) {
    line_.Clear();
    platform_.out << Summary(look, platform_.terminal.color ? UseColor::kYes : UseColor::kNo);
    platform_.out.flush();
    return ExitCodeOf(look);
  }

  int Leave(int signals) {
    signalfd_siginfo taken{};
    const bool known = read(signals, &taken, sizeof taken) == sizeof taken;
    line_.Print(
        fmt::format("job {0} goes on; see `elasticdl status {0}`, or stop it with `elasticdl stop "
                    "{0}`",
                    name_));
    return kExitSignalBase + (known ? static_cast<int>(taken.ssi_signo) : SIGINT);
  }

  Platform& platform_;
  const std::string& name_;
  const std::function<Result<Look>()>& look_;
  LiveLine line_;
  std::string trouble_;  // told last
};

}  // namespace

int WatchJob(Platform& platform, const std::string& name,
             const std::function<Result<Look>()>& look) {
  return Watcher(platform, name, look).Watch();
}

}  // namespace edl::cli
