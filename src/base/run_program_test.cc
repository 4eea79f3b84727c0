#include "base/run_program.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"

namespace edl {
namespace {

Result<ProgramEnd> Shell(const std::string& script, std::optional<std::string> input = "") {
  return RunProgram({.command = {"sh", "-c", script},
                     .environment = {"PATH=/usr/bin:/bin", "WORD=hello"},
                     .input = std::move(input)});
}

TEST(RunProgram, ReturnsExitCodeAndOutput) {
  const auto end = Shell("echo $WORD; echo no >&2; exit 3");
  ASSERT_OK(end);
  EXPECT_EQ(end->code, 3);
  EXPECT_EQ(end->output, "hello\n");
  EXPECT_EQ(end->stderr_text, "no\n");
}

TEST(RunProgram, PassesMoreInputThanAPipeHolds) {
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(Shell("cat", much)->output, much);
  EXPECT_EQ(Shell("true", much)->code, 0) << "a program that reads no input";
}

TEST(RunProgram, ReturnsTheSignalInTheCode) { EXPECT_EQ(Shell("kill -9 $$")->code, 137); }

TEST(RunProgram, ReportsOutputWhileTheProgramRuns) {
  // The program exits only after on_output has seen its output.
  const std::filesystem::path seen_file =
      std::filesystem::path(testing::TempDir()) / fmt::format("seen.{}", getpid());
  std::string seen;
  const auto end = RunProgram(
      {.command = {"sh", "-c",
                   "echo one; echo two >&2; until [ -e \"$0\" ]; do sleep 0.01; done; exit 5",
                   seen_file.string()},
       .environment = {"PATH=/usr/bin:/bin"},
       .on_output = [&](std::string_view text, OutputStream stream) {
         seen += (stream == OutputStream::kStderr ? "!" : "") + std::string(text);
         if (seen.find("one") != std::string::npos && seen.find("!two") != std::string::npos) {
           EXPECT_OK(WriteFileAtomically(seen_file, ""));
         }
       }});
  std::filesystem::remove(seen_file);
  ASSERT_OK(end);
  EXPECT_EQ(end->code, 5);
  EXPECT_EQ(end->output, "one\n");
  EXPECT_EQ(end->stderr_text, "two\n");
}

// Runs a script, and sends this process a signal when the script has written something.
Result<ProgramEnd> ShellWithSignal(const std::string& script, int signal,
                                   std::chrono::milliseconds timeout) {
  // A signal with a signalfd is blocked in this process. It must not be blocked in the program.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  sigset_t before;
  EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
  const FileDescriptor signals(signalfd(-1, &mask, SFD_CLOEXEC));
  Result<ProgramEnd> end =
      RunProgram({.command = {"sh", "-c", script},
                  .environment = {"PATH=/usr/bin:/bin"},
                  .on_output = [&](std::string_view, OutputStream) { kill(getpid(), signal); },
                  .signals = signals.get(),
                  .timeout = timeout});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return end;
}

TEST(RunProgram, ForwardsSignalsToTheWholeProcessGroup) {
  // The inner shell is a separate process, and the outer one waits for it.
  const auto end = ShellWithSignal("sh -c 'echo ready; exec sleep 100'; echo survived $?; exit 7",
                                   SIGTERM, std::chrono::hours(1));
  ASSERT_OK(end);
  EXPECT_EQ(end->code, 128 + SIGTERM);
  EXPECT_EQ(end->interrupted_by, SIGTERM);
  EXPECT_EQ(end->output, "ready\n");
}

TEST(RunProgram, SendsStrongerSignalsToAProgramThatIgnoresOne) {
  constexpr std::chrono::milliseconds kSoon(20);
  const auto deaf = ShellWithSignal("trap '' INT; echo ready; exec sleep 100", SIGINT, kSoon);
  ASSERT_OK(deaf);
  EXPECT_EQ(deaf->code, 128 + SIGTERM);
  EXPECT_EQ(deaf->interrupted_by, SIGINT);
  const auto deafer =
      ShellWithSignal("trap '' INT TERM; echo ready; exec sleep 100", SIGINT, kSoon);
  ASSERT_OK(deafer);
  EXPECT_EQ(deafer->code, 128 + SIGKILL);
}

TEST(FindProgram, SearchesPathAsAShellDoes) {
  EXPECT_EQ(FindProgram("sh", "/no/such/folder:/bin"), "/bin/sh");
  EXPECT_EQ(FindProgram("no-such-program", "/bin"), std::nullopt);
  EXPECT_EQ(FindProgram("bin", "/usr"), std::nullopt) << "a folder";
  EXPECT_EQ(FindProgram("sh", ""), std::nullopt);
  EXPECT_EQ(FindProgram("/bin/../bin/sh", ""), "/bin/../bin/sh");
  EXPECT_EQ(FindProgram("usr/bin/sh", "/"), std::nullopt) << "relative to the current folder";
}

TEST(RunProgram, FailsIfTheProgramDoesNotExist) {
  EXPECT_THAT(RunProgram({.command = {"/no/such/program"}, .input = ""}),
              StatusIs(Code::kNotFound));
}

}  // namespace
}  // namespace edl
