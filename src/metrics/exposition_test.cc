#include "metrics/exposition.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Metric kPushes{"edl_pushes_total", Type::kCounter, "Pushes.", "table"};
constexpr Metric kMemory{"edl_memory_bytes", Type::kGauge, "Memory \"used\".", ""};
constexpr Metric kVersion{"edl_build_info", Type::kInfo, "The version.", "version"};
constexpr Metric kTimes{"edl_push_seconds", Type::kHistogram, "Times.", ""};

TEST(Metric, AFamilyIsTheNameWithoutTheSuffixOfItsType) {
  EXPECT_EQ(kPushes.family(), "edl_pushes");
  EXPECT_EQ(kVersion.family(), "edl_build");
  EXPECT_EQ((Metric{"edl_total", Type::kGauge, "", ""}.family()), "edl_total");
}

TEST(Metric, AUnitIsTheLastWordOfTheFamily) {
  EXPECT_EQ(kMemory.unit(), "bytes");
  EXPECT_EQ((Metric{"edl_cpu_seconds_total", Type::kCounter, "", ""}.unit()), "seconds");
  EXPECT_EQ(kPushes.unit(), "");
}

TEST(Exposition, WritesTheTextFormatOfPrometheus) {
  Exposition out(Format::kPrometheus, {{"job_name", "iris"}});
  out.Begin(kPushes);
  out.Add({"a"}, uint64_t{7});
  out.Add({"b"}, int64_t{8});
  out.AddOnly(kMemory, 0.5);
  out.Begin(kVersion);
  out.Add({"2.0"}, uint64_t{1});
  EXPECT_EQ(out.Finish(),
            "# TYPE edl_pushes_total counter\n"
            "# HELP edl_pushes_total Pushes.\n"
            "edl_pushes_total{job_name=\"iris\",table=\"a\"} 7\n"
            "edl_pushes_total{job_name=\"iris\",table=\"b\"} 8\n"
            "# TYPE edl_memory_bytes gauge\n"
            "# HELP edl_memory_bytes Memory \"used\".\n"
            "edl_memory_bytes{job_name=\"iris\"} 0.5\n"
            "# TYPE edl_build_info gauge\n"
            "# HELP edl_build_info The version.\n"
            "edl_build_info{job_name=\"iris\",version=\"2.0\"} 1\n");
}

TEST(Exposition, WritesOpenMetrics) {
  Exposition out(Format::kOpenMetrics, {});
  out.Begin(kPushes);
  out.Add({"a"}, uint64_t{7});
  out.AddOnly(kMemory, 0.5);
  out.Begin(kVersion);
  out.Add({"2.0"}, uint64_t{1});
  EXPECT_EQ(out.Finish(),
            "# TYPE edl_pushes counter\n"
            "# HELP edl_pushes Pushes.\n"
            "edl_pushes_total{table=\"a\"} 7\n"
            "# TYPE edl_memory_bytes gauge\n"
            "# UNIT edl_memory_bytes bytes\n"
            "# HELP edl_memory_bytes Memory \\\"used\\\".\n"
            "edl_memory_bytes 0.5\n"
            "# TYPE edl_build info\n"
            "# HELP edl_build The version.\n"
            "edl_build_info{version=\"2.0\"} 1\n"
            "# EOF\n");
}

TEST(Exposition, ABucketCountsAllThatIsNotAboveItsBound) {
  const std::array<double, 2> bounds = {0.5, 1};
  const std::array<uint64_t, 3> counts = {4, 2, 1};
  Exposition out(Format::kPrometheus, {});
  out.Begin(kTimes);
  out.Add({}, Buckets{.bounds = bounds, .counts = counts, .sum = 9.5});
  const std::string text = out.Finish();
  EXPECT_THAT(text, HasSubstr("edl_push_seconds_bucket{le=\"0.5\"} 4\n"
                              "edl_push_seconds_bucket{le=\"1.0\"} 6\n"
                              "edl_push_seconds_bucket{le=\"+Inf\"} 7\n"
                              "edl_push_seconds_sum 9.5\n"
                              "edl_push_seconds_count 7\n"));
}

TEST(Exposition, ExemplarsAreOnlyInOpenMetrics) {
  const std::array<double, 1> bounds = {1};
  const std::array<uint64_t, 2> counts = {1, 0};
  const std::array<std::optional<Exemplar>, 2> exemplars = {
      Exemplar{.labels = {{"incident", "17"}}, .value = 0.31}, std::nullopt};
  for (const Format format : {Format::kPrometheus, Format::kOpenMetrics}) {
    Exposition out(format, {});
    out.Begin(kTimes);
    out.Add({}, Buckets{.bounds = bounds, .counts = counts, .exemplars = exemplars});
    const std::string text = out.Finish();
    if (format == Format::kOpenMetrics) {
      EXPECT_THAT(text, HasSubstr("{le=\"1.0\"} 1 # {incident=\"17\"} 0.31\n"));
    } else {
      EXPECT_THAT(text, Not(HasSubstr("incident")));
    }
  }
}

TEST(Exposition, AHistogramOfDurationsCountsWhatIsAboveItsLastBound) {
  Histogram times;
  times.Add(std::chrono::microseconds(3));
  times.Add(std::chrono::hours(1));
  Exposition out(Format::kPrometheus, {});
  out.Begin(kTimes);
  out.Add({}, times.Read());
  const std::string text = out.Finish();
  EXPECT_THAT(text, HasSubstr("edl_push_seconds_bucket{le=\"2e-06\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("edl_push_seconds_bucket{le=\"4e-06\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("edl_push_seconds_bucket{le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("edl_push_seconds_sum 3600.000003\n"));
}

TEST(Exposition, EscapesValuesOfLabelsAndReplacesThoseThatAreNotUtf8) {
  Exposition out(Format::kPrometheus, {});
  out.Begin(kPushes);
  out.Add({"a\"b\\c\nd"}, uint64_t{1});
  out.Add({"\xff"}, uint64_t{1});
  const std::string text = out.Finish();
  EXPECT_THAT(text, HasSubstr("{table=\"a\\\"b\\\\c\\nd\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{table=\"?\"} 1\n"));
}

TEST(Exposition, WritesNumbersThatAreNotFinite) {
  Exposition out(Format::kPrometheus, {});
  out.Begin(kMemory);
  out.Add({}, std::numeric_limits<double>::quiet_NaN());
  out.Add({}, std::numeric_limits<double>::infinity());
  out.Add({}, -std::numeric_limits<double>::infinity());
  EXPECT_THAT(out.Finish(), HasSubstr("edl_memory_bytes NaN\n"
                                      "edl_memory_bytes +Inf\n"
                                      "edl_memory_bytes -Inf\n"));
}

TEST(FormatFor, IsOpenMetricsIfTheClientPrefersIt) {
  // Prometheus 2.42.
  EXPECT_EQ(FormatFor("application/openmetrics-text;version=1.0.0,"
                      "application/openmetrics-text;version=0.0.1;q=0.75,"
                      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            Format::kOpenMetrics);
  EXPECT_EQ(FormatFor("application/openmetrics-text"), Format::kOpenMetrics);
}

TEST(FormatFor, IsThatOfPrometheusOtherwise) {
  for (const char* accept :
       {"", "*/*", "text/html", "text/plain;version=0.0.4", ";;,,q=", "application/openmetrics",
        "text/plain, application/openmetrics-text;q=0.5", "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=x", "application/openmetrics-text;q=7"}) {
    EXPECT_EQ(FormatFor(accept), Format::kPrometheus) << accept;
  }
}

}  // namespace
}  // namespace edl::metrics
