#include "base/run_program.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(end->complaints, "no\n");
}

TEST(RunProgram, HandsOnMoreInputThanAPipeHolds) {
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(Shell("cat", much)->output, much);
  EXPECT_EQ(Shell("true", much)->code, 0) << "nobody reads it";
}

TEST(RunProgram, TellsOfASignal) { EXPECT_EQ(Shell("kill -9 $$")->code, 137); }

TEST(RunProgram, FailsWhereThereIsNoSuchProgram) {
  EXPECT_EQ(RunProgram({.command = {"/no/such/program"}, .input = ""}).status().code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace edl
