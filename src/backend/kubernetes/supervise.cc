#include "backend/kubernetes/supervise.h"

#include <csignal>
#include <ctime>
#include <memory>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "backend/exit_cause.h"
#include "backend/kubernetes/cluster_cleanup.h"
#include "backend/restart_policy.h"
#include "base/clock.h"
#include "base/log.h"
#include "job/master_exit.h"

namespace edl::backend::kubernetes {
namespace {

constexpr int kSignalBase = 128;
constexpr int kCannotStart = 127;

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

pid_t Start(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const sigset_t handled = HandledSignals();
  sigprocmask(SIG_UNBLOCK, &handled, nullptr);
  execv(program.c_str(), argv.data());
  _exit(kCannotStart);
}

// Waits until `child` has ended (returns its status), or for `timeout`. Reaps all other processes
// that end: the first process of a container inherits orphans.
std::optional<int> Await(pid_t child, std::optional<Duration> timeout, bool& terminated) {
  const sigset_t handled = HandledSignals();
  while (true) {
    int status = 0;
    for (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0;
         ended = waitpid(-1, &status, WNOHANG)) {
      if (ended == child) return status;
    }
    siginfo_t signal{};
    int taken = 0;
    if (timeout.has_value()) {
      const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(*timeout);
      const timespec most{.tv_sec = nanoseconds.count() / 1'000'000'000,
                          .tv_nsec = nanoseconds.count() % 1'000'000'000};
      taken = sigtimedwait(&handled, &signal, &most);
    } else {
      taken = sigwaitinfo(&handled, &signal);
    }
    if (taken < 0 && errno == EAGAIN) return std::nullopt;
    if (taken == SIGTERM || taken == SIGINT) {
      terminated = true;
      if (child > 0) kill(child, taken);
      if (child <= 0) return std::nullopt;
    }
  }
}

// The master will not be restarted, so the pods that it launched must not outlive it.
int EndWithoutMaster(const Clock& clock, int code) {
  const std::unique_ptr<ClusterCleanup> cleanup = ClusterCleanup::Make(clock);
  if (cleanup == nullptr) return code;
  LOG_INFO("deleting the pods that the master launched");
  if (const Status deleted = cleanup->DeleteReplicas(); !deleted.ok()) {
    LOG_ERROR("pods of the job may still run: {}; end them with `elasticdl stop`",
              deleted.message());
  }
  return code;
}

// The pod was terminated from outside. The garbage collector deletes what the master launched when
// the pod of the master is deleted.
int EndByRequest(const Clock& clock, int code) {
  const std::unique_ptr<ClusterCleanup> cleanup = ClusterCleanup::Make(clock);
  if (cleanup == nullptr) return code;
  if (const Status noted = cleanup->NoteInterruption(); !noted.ok()) {
    LOG_WARNING("{}", noted.message());
  }
  return code;
}

}  // namespace

int Supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  const sigset_t handled = HandledSignals();
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  const SystemClock clock;
  RestartPolicy policy;
  while (true) {
    const Time begin = clock.Now();
    const pid_t child = Start(program, arguments);
    if (child < 0) {
      LOG_ERROR("cannot start {}: {}", program.string(), Errno("fork").message());
      return kCannotStart;
    }
    bool terminated = false;
    const int status = Await(child, std::nullopt, terminated).value();
    const bool exited = WIFEXITED(status);
    const int code = exited ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
    if (exited && job::HasEndedItsJob(code)) return code;
    if (terminated) return EndByRequest(clock, code);
    if (exited && code != job::kMasterLostLedger) return EndWithoutMaster(clock, code);
    const std::string how =
        exited ? "lost its ledger" : "was killed by " + NameOfSignal(WTERMSIG(status));
    const std::optional<Duration> wait = policy.OnDeath(clock.Now() - begin);
    if (!wait.has_value()) {
      LOG_ERROR("the master {} repeatedly; the job ends", how);
      return EndWithoutMaster(clock, code);
    }
    LOG_WARNING("the master {}; restarting it", how);
    (void)Await(0, *wait, terminated);
    if (terminated) return EndByRequest(clock, code);
  }
}

}  // namespace edl::backend::kubernetes
