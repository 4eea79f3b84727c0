#include "base/run_program.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"

namespace edl {
namespace {

Result<ProgramEnd> Shell(const std::string& script, std::optional<std::string> input = "") {
  return RunProgram({.command = {"sh", "-c", script},
                     .environment = {"PATH=/usr/bin:/bin", "WORD=hello"},
                     .input = std::move(input)});
}

TEST(RunProgram, TellsHowItEndedAndWhatItSaid) {
  const auto end = Shell("echo $WORD; echo no >&2; exit 3");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 3);
  EXPECT_EQ(end->output, "hello\n");
  EXPECT_EQ(end->stderr_text, "no\n");
}

TEST(RunProgram, HandsOnMoreInputThanAPipeHolds) {
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(Shell("cat", much)->output, much);
  EXPECT_EQ(Shell("true", much)->code, 0) << "nobody reads it";
}

TEST(RunProgram, TellsOfASignal) { EXPECT_EQ(Shell("kill -9 $$")->code, 137); }

TEST(RunProgram, IsHeardWhileItWrites) {
  // It ends only when what it wrote was heard.
  const std::filesystem::path heard_file =
      std::filesystem::path(testing::TempDir()) / fmt::format("heard.{}", getpid());
  std::string said;
  const auto end = RunProgram(
      {.command = {"sh", "-c",
                   "echo one; echo two >&2; until [ -e \"$0\" ]; do sleep 0.01; done; exit 5",
                   heard_file.string()},
       .environment = {"PATH=/usr/bin:/bin"},
       .heard = [&](std::string_view text, bool is_stderr) {
         said += (is_stderr ? "!" : "") + std::string(text);
         if (said.find("one") != std::string::npos && said.find("!two") != std::string::npos) {
           EXPECT_TRUE(WriteFileAtomically(heard_file, "").ok());
         }
       }});
  std::filesystem::remove(heard_file);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 5);
  EXPECT_EQ(end->output, "one\n");
  EXPECT_EQ(end->stderr_text, "two\n");
}

// Runs a script, and sends this process a signal when it has said something.
Result<ProgramEnd> ShellWithSignal(const std::string& script, int signal,
                                   std::chrono::milliseconds timeout) {
  // Blocked here as whoever makes a signalfd blocks it, but not in the program.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  sigset_t before;
  EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
  const FileDescriptor signals(signalfd(-1, &mask, SFD_CLOEXEC));
  Result<ProgramEnd> end =
      RunProgram({.command = {"sh", "-c", script},
                  .environment = {"PATH=/usr/bin:/bin"},
                  .heard = [&](std::string_view, bool) { kill(getpid(), signal); },
                  .signals = signals.get(),
                  .timeout = timeout});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return end;
}

TEST(RunProgram, HandsSignalsOnToAllThatWasStarted) {
  // The inner shell is a process of its own, and the outer one waits for it.
  const auto end = ShellWithSignal("sh -c 'echo ready; exec sleep 100'; echo survived $?; exit 7",
                                   SIGTERM, std::chrono::hours(1));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 128 + SIGTERM);
  EXPECT_EQ(end->interrupted_by, SIGTERM);
  EXPECT_EQ(end->output, "ready\n");
}

TEST(RunProgram, InsistsWhereASignalIsNotHeeded) {
  constexpr std::chrono::milliseconds kSoon(20);
  const auto deaf = ShellWithSignal("trap '' INT; echo ready; exec sleep 100", SIGINT, kSoon);
  ASSERT_TRUE(deaf.ok()) << deaf.status();
  EXPECT_EQ(deaf->code, 128 + SIGTERM);
  EXPECT_EQ(deaf->interrupted_by, SIGINT);
  const auto deafer =
      ShellWithSignal("trap '' INT TERM; echo ready; exec sleep 100", SIGINT, kSoon);
  ASSERT_TRUE(deafer.ok()) << deafer.status();
  EXPECT_EQ(deafer->code, 128 + SIGKILL);
}

TEST(FindProgram, LooksWhereAShellLooks) {
  EXPECT_EQ(FindProgram("sh", "/no/such/folder:/bin"), "/bin/sh");
  EXPECT_EQ(FindProgram("no-such-program", "/bin"), std::nullopt);
  EXPECT_EQ(FindProgram("bin", "/usr"), std::nullopt) << "a folder";
  EXPECT_EQ(FindProgram("sh", ""), std::nullopt);
}

TEST(RunProgram, FailsWhereThereIsNoSuchProgram) {
  EXPECT_EQ(RunProgram({.command = {"/no/such/program"}, .input = ""}).status().code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace edl
