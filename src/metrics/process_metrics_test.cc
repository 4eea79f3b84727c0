#include "metrics/process_metrics.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"

namespace edl::metrics {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// Files as the kernel writes them.
class ProcessMetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    // The name of the program contains a parenthesis and spaces.
    Write("proc/self/stat",
          "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 3 0 1000 8192 2 99 0 0\n");
    Write("proc/stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
    Write("proc/self/cgroup", "0::/pod/app\n");
    fs::create_directories(folder_.path() / "proc/self/fd/0");
    fs::create_directories(folder_.path() / "proc/self/fd/1");
    fs::create_directories(folder_.path() / "cgroup");
  }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((folder_.path() / path).parent_path());
    ASSERT_OK(WriteFileAtomically(folder_.path() / path, text));
  }
  ProcessFiles files() const {
    return {.proc = folder_.path() / "proc", .cgroups = folder_.path() / "cgroup"};
  }

  const TemporaryFolder folder_;
};

TEST_F(ProcessMetricsTest, ReadsTheFieldsAfterTheNameOfTheProgram) {
  ASSERT_OK_AND_ASSIGN(const ProcessFigures figures, ReadProcess(files()));
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(figures.started_at, 1700000000 + 1000 / ticks);
  EXPECT_EQ(figures.virtual_bytes, 8192U);
  EXPECT_EQ(figures.open_fds, 2U);
  EXPECT_FALSE(figures.memory_limit_bytes.has_value());
}

TEST_F(ProcessMetricsTest, TheLowestLimitOfTheGroupsAboveTheProcessCounts) {
  Write("cgroup/pod/app/memory.max", "max\n");
  Write("cgroup/pod/memory.max", "2000000\n");
  Write("cgroup/memory.max", "3000000\n");
  ASSERT_OK_AND_ASSIGN(const ProcessFigures figures, ReadProcess(files()));
  EXPECT_EQ(figures.memory_limit_bytes, 2000000U);
}

TEST_F(ProcessMetricsTest, AnUnknownFormatIsAnError) {
  for (const char* text : {"", "7 (a) S 1 2", "7 a S 1"}) {
    Write("proc/self/stat", text);
    EXPECT_THAT(ReadProcess(files()), StatusIs(Code::kUnavailable, HasSubstr("self/stat"))) << text;
    Exposition out(Format::kPrometheus, {});
    AddProcess(out, files());
    EXPECT_EQ(out.Finish(), "");
  }
}

TEST_F(ProcessMetricsTest, AProcessWithoutALimitHasNoMetricOfIt) {
  Exposition out(Format::kPrometheus, {{"job_name", "iris"}});
  AddProcess(out, files());
  const std::string text = out.Finish();
  EXPECT_THAT(text, HasSubstr("process_open_fds{job_name=\"iris\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("memory_limit")));
}

TEST(ProcessMetrics, OfThisProcessAreRead) {
  ASSERT_OK_AND_ASSIGN(const ProcessFigures figures, ReadProcess());
  EXPECT_GT(figures.virtual_bytes, 0U);
  EXPECT_GT(figures.open_fds, 2U);
  EXPECT_GT(figures.started_at, 1.6e9);
}

}  // namespace
}  // namespace edl::metrics
