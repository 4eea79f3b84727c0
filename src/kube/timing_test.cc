#include "kube/timing.h"

#include <ctime>
#include <fstream>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace edl::kube {
namespace {

constexpr int kSuspendedSeconds = 1000;
constexpr int kTooEarly = 1;
constexpr int kCannotSetUp = 2;
constexpr int kCrashed = 3;

// Waits for a child, and returns its exit code.
int ExitCodeOf(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kCrashed;
  return WEXITSTATUS(status);
}

// Runs `check` in a time namespace whose boot time is ahead of its monotonic time, as after a
// suspend. A child runs it, because only children of this process enter the new namespace.
int InATimeNamespace(int (*check)()) {
  if (unshare(CLONE_NEWTIME) != 0) return kCannotSetUp;
  std::ofstream offsets("/proc/self/timens_offsets");
  offsets << CLOCK_BOOTTIME << " " << kSuspendedSeconds << " 0\n";
  offsets.close();
  if (!offsets) return kCannotSetUp;
  const pid_t child = fork();
  if (child == 0) _exit(check());
  return ExitCodeOf(child);
}

// A lease runs out while the machine of its holder is suspended.
TEST(BootClock, CountsTheTimeOfASuspendedMachine) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(InATimeNamespace([] {
      const Duration ahead = BootClock().Now() - SystemClock().Now();
      return ahead > std::chrono::seconds(kSuspendedSeconds - 1) ? 0 : kTooEarly;
    }));
  }
  const int code = ExitCodeOf(child);
  if (code == kCannotSetUp) GTEST_SKIP() << "time namespaces need root and Linux 5.6";
  EXPECT_EQ(code, 0) << "1: it counts only the time in which the machine ran; 3: the child crashed";
}

}  // namespace
}  // namespace edl::kube
