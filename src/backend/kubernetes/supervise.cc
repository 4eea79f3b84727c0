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

sigset_t Heard() {
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
  const sigset_t heard = Heard();
  sigprocmask(SIG_UNBLOCK, &heard, nullptr);
  execv(program.c_str(), argv.data());
  _exit(kCannotStart);
}

// Waits until `child` has ended, or for `timeout`. Reaps whatever else ends: as the first process
// of a container this one inherits it.
std::optional<int> Await(pid_t child, std::optional<Duration> timeout, bool& told_to_end) {
  const sigset_t heard = Heard();
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
      taken = sigtimedwait(&heard, &signal, &most);
    } else {
      taken = sigwaitinfo(&heard, &signal);
    }
    if (taken < 0 && errno == EAGAIN) return std::nullopt;
    if (taken == SIGTERM || taken == SIGINT) {
      told_to_end = true;
      if (child > 0) kill(child, taken);
      if (child <= 0) return std::nullopt;
    }
  }
}

// The master is not started again: what it launched must not outlive it.
int EndWithoutMaster(const Clock& clock, int code) {
  const std::unique_ptr<ClusterCleanup> cleanup = ClusterCleanup::Make(clock);
  if (cleanup == nullptr) return code;
  LOG_INFO("the pods that the master launched are deleted");
  if (const Status deleted = cleanup->DeleteReplicas(); !deleted.ok()) {
    LOG_ERROR("pods of the job may still run: {}; `elasticdl stop` ends them", deleted.message());
  }
  return code;
}

// The garbage collector deletes what the master launched once the master's pod is gone.
int EndAsTold(const Clock& clock, int code) {
  const std::unique_ptr<ClusterCleanup> cleanup = ClusterCleanup::Make(clock);
  if (cleanup == nullptr) return code;
  if (const Status noted = cleanup->NoteInterruption(); !noted.ok()) {
    LOG_WARNING("{}", noted.message());
  }
  return code;
}

}  // namespace

int Supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  const sigset_t heard = Heard();
  sigprocmask(SIG_BLOCK, &heard, nullptr);
  const SystemClock clock;
  RestartPolicy policy;
  while (true) {
    const Time begin = clock.Now();
    const pid_t child = Start(program, arguments);
    if (child < 0) {
      LOG_ERROR("{} cannot be started: {}", program.string(), Errno("fork").message());
      return kCannotStart;
    }
    bool told_to_end = false;
    const int status = Await(child, std::nullopt, told_to_end).value();
    const bool exited = WIFEXITED(status);
    const int code = exited ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
    if (exited && job::HasEndedItsJob(code)) return code;
    if (told_to_end) return EndAsTold(clock, code);
    if (exited && code != job::kMasterLostLedger) return EndWithoutMaster(clock, code);
    const std::string how =
        exited ? "lost its ledger" : "was killed by " + NameOfSignal(WTERMSIG(status));
    const std::optional<Duration> wait = policy.OnDeath(clock.Now() - begin);
    if (!wait.has_value()) {
      LOG_ERROR("the master {} again and again; the job ends here", how);
      return EndWithoutMaster(clock, code);
    }
    LOG_WARNING("the master {}; it starts again", how);
    (void)Await(0, *wait, told_to_end);
    if (told_to_end) return EndAsTold(clock, code);
  }
}

}  // namespace edl::backend::kubernetes
