#include "ps/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::ps {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

TEST(Metrics, AreOneLineForEachLane) {
  std::vector<LaneStats> lanes(2);
  lanes[0].rows = 7;
  lanes[1].pushes = 3;
  const std::string text = MetricsText(lanes, metrics::Format::kPrometheus, {});
  EXPECT_THAT(text, HasSubstr("# TYPE elasticdl_ps_rows gauge\n"
                              "# HELP elasticdl_ps_rows Rows of all tables.\n"
                              "elasticdl_ps_rows{lane=\"0\"} 7\n"
                              "elasticdl_ps_rows{lane=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("elasticdl_ps_pushes_total{lane=\"1\"} 3\n"));
}

TEST(Metrics, ReportTimesAsAHistogram) {
  Histogram times;
  for (const int micros : {0, 1, 2, 3, 4, 1000}) times.Add(microseconds(micros));
  times.Add(std::chrono::hours(1));
  std::vector<LaneStats> lanes(1);
  lanes[0].pull_times = times.Read();
  const std::string text = MetricsText(lanes, metrics::Format::kPrometheus, {});
  // Each bound counts all that is not above it.
  EXPECT_THAT(text, HasSubstr("pull_seconds_bucket{lane=\"0\",le=\"1e-06\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("pull_seconds_bucket{lane=\"0\",le=\"2e-06\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("pull_seconds_bucket{lane=\"0\",le=\"4e-06\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("pull_seconds_bucket{lane=\"0\",le=\"0.001024\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("pull_seconds_bucket{lane=\"0\",le=\"+Inf\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("pull_seconds_count{lane=\"0\"} 7\n"));
}

}  // namespace
}  // namespace edl::ps
