#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"
#include "client/testing/fake_master_service.h"

namespace edl::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

job::JobView Ended(const std::string& name) {
  job::JobView view{
      .name = name, .state = job::JobState::kSucceeded, .started_at = 1, .ran_seconds = 125};
  view.datasets.push_back(
      {.name = "train", .size = 400, .epochs = 1, .records_done = 400, .records_total = 400});
  return view;
}

telemetry::Curves TwoCurves() {
  telemetry::Curves curves;
  curves.series.push_back({.name = "records_per_s", .unit = "records/s"});
  curves.series.push_back({.name = "master.memory", .unit = "bytes"});
  for (int64_t time = 100; time < 104; ++time) {
    for (telemetry::Curve& curve : curves.series) {
      curve.points.push_back({.time = time});
      curve.points.back().values.Add(static_cast<double>(time - 100) * 524'288, -1);
    }
  }
  return curves;
}

TEST(Report, ShowsTheCurvesOfAJobThatHasEnded) {
  FakePlatform fake;
  fake.AddJob(Ended("iris"));
  fake.curves["iris"] = TwoCurves();

  ASSERT_EQ(fake.Run({"report", "iris"}), kExitOk) << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("Job iris succeeded after 2 min 05 s\n"));
  EXPECT_THAT(fake.out(), HasSubstr("400 of 400 (1 epoch of 400)"));
  EXPECT_THAT(fake.out(), HasSubstr("SERIES         CURVE  LAST       MIN      MAX        UNIT\n"));
  EXPECT_THAT(fake.out(),
              HasSubstr("records_per_s  _:+#   1,572,864  0        1,572,864  records/s\n"));
  EXPECT_THAT(fake.out(), HasSubstr("master.memory  _:+#   1.5 MiB    0.0 MiB  1.5 MiB\n"));
}

TEST(Report, DrawsBlocksOnATerminalWithUtf8) {
  FakePlatform fake;
  fake.AddJob(Ended("iris"));
  fake.curves["iris"] = TwoCurves();
  fake.variables["LANG"] = "C.UTF-8";
  ASSERT_EQ(fake.Run({"report", "iris"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("▁▃▆█"));

  fake.variables["LC_ALL"] = "POSIX";
  ASSERT_EQ(fake.Run({"report", "iris"}), kExitOk);
  EXPECT_THAT(fake.out(), Not(HasSubstr("▁")));
}

TEST(Report, AsksTheMasterOfARunningJob) {
  client::FakeMasterService master("secret");
  job::JobView view = Ended("iris");
  view.state = job::JobState::kRunning;
  master.SetView(view);
  master.SetCurves(TwoCurves().ToJson());
  FakePlatform fake;
  fake.AddRunningJob(view, master.address(), "secret");

  ASSERT_EQ(fake.Run({"report", "iris", "--series=records_per_s, master.memory"}), kExitOk)
      << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("Job iris running for 2 min 05 s\n"));
  EXPECT_THAT(fake.out(), HasSubstr("records_per_s  _:+#"));
  EXPECT_THAT(master.asked_series(), ElementsAre("records_per_s", "master.memory"));
}

TEST(Report, PrintsJsonForScripts) {
  FakePlatform fake;
  fake.AddJob(Ended("iris"));
  fake.curves["iris"] = TwoCurves();
  fake.curves["iris"].series[0].points[2].values = {.not_finite = true};

  ASSERT_EQ(fake.Run({"report", "iris", "--output=json", "--series=records_per_s"}), kExitOk);

  const nlohmann::json out = ReadJson(fake.out());
  ASSERT_EQ(out["series"].size(), 1);
  EXPECT_EQ(out["series"][0]["name"], "records_per_s");
  EXPECT_EQ(out["series"][0]["points"][1], ReadJson("[101,524288,524288,524288,1,null]"));
  EXPECT_EQ(out["series"][0]["points"][2], ReadJson("[102,null,null,null,0,null]"));
}

TEST(Report, NamesWhatDoesNotExist) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"report", "irsi"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("irsi"));

  fake.AddJob(Ended("iris"));
  EXPECT_EQ(fake.Run({"report", "irsi"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("iris"));
  EXPECT_EQ(fake.Run({"report", "iris"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("the curves of iris: there is no ledger"));

  fake.curves["iris"] = TwoCurves();
  EXPECT_EQ(fake.Run({"report", "iris", "--series=loss"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("job iris has no series 'loss'"));
}

TEST(Report, ShowsNamesOfProgramsWithoutControlCharacters) {
  FakePlatform fake;
  fake.AddJob(Ended("iris"));
  fake.curves["iris"].series.push_back({.name = "program.\x1b[2J", .unit = ""});
  fake.curves["iris"].dropped_series = 2;

  ASSERT_EQ(fake.Run({"report", "iris"}), kExitOk);

  EXPECT_THAT(fake.out(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(fake.out(), HasSubstr("and 2 series that had no room"));
}

}  // namespace
}  // namespace edl::cli
