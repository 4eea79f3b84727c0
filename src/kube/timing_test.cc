#include "kube/timing.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace edl::kube {
namespace {

constexpr int kSuspendedSeconds = 1000;
constexpr int kCannotSetUp = 2;

// In a time namespace whose boot time is ahead of its monotonic time, as after a suspend. Returns
// the exit code of a child, because only children are in the new namespace.
int InATimeNamespace(int (*check)()) {
  if (unshare(CLONE_NEWTIME) != 0) return kCannotSetUp;
  std::ofstream offsets("/proc/self/timens_offsets");
  offsets << CLOCK_BOOTTIME << " " << kSuspendedSeconds << " 0" << std::endl;
  if (!offsets) return kCannotSetUp;
  const pid_t child = fork();
  if (child == 0) _exit(check());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kCannotSetUp;
  return WEXITSTATUS(status);
}

// A lease runs out while the machine of its holder is suspended.
TEST(BootClock, CountsTheTimeOfASuspendedMachine) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    _exit(InATimeNamespace([] {
      const Duration ahead = BootClock().Now() - SystemClock().Now();
      return ahead > std::chrono::seconds(kSuspendedSeconds - 1) ? 0 : 1;
    }));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannotSetUp)
    GTEST_SKIP() << "time namespaces need root and Linux 5.6";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "it counts only the time in which the machine ran";
}

}  // namespace
}  // namespace edl::kube
