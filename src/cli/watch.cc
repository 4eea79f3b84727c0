#include "cli/watch.h"

#include <chrono>
#include <csignal>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/format.h"
#include "cli/progress.h"
#include "cli/summary.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kLookMillis = 1000;
constexpr Duration kLineInterval = 10s;

// What a process ends with whose job ended so.
int ExitCodeOf(const Look& look) {
  if (look.standing == Standing::kInterrupted) return kExitFailed;
  if (look.view.state == job::JobState::kSucceeded) return kExitOk;
  return look.view.state == job::JobState::kStopped ? kExitStopped : kExitFailed;
}

class Watcher {
 public:
  Watcher(Platform& platform, const std::string& name, const std::function<Result<Look>()>& look)
      : platform_(platform), name_(name), look_(look), last_line_(platform.clock.Now()) {}

  int Watch() {
    const Result<FileDescriptor> signals = platform_.catch_signals();
    if (!signals.ok()) return Fail(platform_, signals.status());
    while (true) {
      const Result<Look> look = look_();
      if (!look.ok() && look.status().code() == Code::kNotFound) {
        ClearLive();
        return Fail(platform_, look.status());
      }
      if (look.ok()) {
        Show(*look);
        if (look->standing != Standing::kRunning) return End(*look);
      } else if (look.status().message() != trouble_) {
        trouble_ = look.status().message();
        Print(trouble_);
      }
      pollfd waits{signals->get(), POLLIN, 0};
      if (poll(&waits, 1, kLookMillis) > 0) return Leave(signals->get());
    }
  }

 private:
  void Show(const Look& look) {
    for (const std::string& line : Changes(view_, look.view)) Print(line);
    if (!look.trouble.empty() && look.trouble != trouble_) Print(Harmless(look.trouble));
    trouble_ = look.trouble;
    view_ = look.view;
    const Time now = platform_.clock.Now();
    rate_.Add(now, RecordsOf(view_).done);
    const std::string line = ProgressLine(view_, rate_.PerSecond());
    if (platform_.terminal.live) {
      platform_.out << "\r" << Cut(line, platform_.terminal.columns() - 1) << "\x1b[K";
      platform_.out.flush();
      drawn_ = true;
    } else if (now - last_line_ >= kLineInterval) {
      last_line_ = now;
      Print(line);
    }
  }

  int End(const Look& look) {
    ClearLive();
    platform_.out << Summary(look, platform_.terminal.color ? UseColor::kYes : UseColor::kNo);
    platform_.out.flush();
    return ExitCodeOf(look);
  }

  int Leave(int signals) {
    signalfd_siginfo taken{};
    const bool read_all = read(signals, &taken, sizeof taken) == sizeof taken;
    Print(
        fmt::format("job {0} goes on; see `elasticdl status {0}`, or stop it with "
                    "`elasticdl stop {0}`",
                    name_));
    return kExitSignalBase + (read_all ? static_cast<int>(taken.ssi_signo) : SIGINT);
  }

  void Print(const std::string& line) {
    ClearLive();
    platform_.out << line << "\n";
    platform_.out.flush();
  }

  void ClearLive() {
    if (drawn_) platform_.out << "\r\x1b[K";
    drawn_ = false;
  }

  Platform& platform_;
  const std::string& name_;
  const std::function<Result<Look>()>& look_;
  Time last_line_;
  job::JobView view_;
  RateMeter rate_;
  std::string trouble_;  // told last
  bool drawn_ = false;
};

}  // namespace

int WatchJob(Platform& platform, const std::string& name,
             const std::function<Result<Look>()>& look) {
  return Watcher(platform, name, look).Watch();
}

}  // namespace edl::cli
