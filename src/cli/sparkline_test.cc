#include "cli/sparkline.h"

#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace edl::cli {
namespace {

using telemetry::Curve;
using telemetry::Curves;

std::vector<Curve::Point> Points(const std::vector<std::pair<int64_t, double>>& values) {
  std::vector<Curve::Point> points;
  for (const auto& [time, value] : values) {
    points.push_back({.time = time});
    points.back().values.Add(value, -1);
  }
  return points;
}

TEST(Sparkline, ShowsEachValueAsABlock) {
  const auto points = Points({{10, 0}, {11, 1}, {12, 2}, {13, 7}});
  const TimeColumns columns{.from = 10, .width = 1, .count = 4};

  EXPECT_EQ(Sparkline(points, columns, Glyphs::kUnicode), "▁▂▃█");
  EXPECT_EQ(Sparkline(points, columns, Glyphs::kAscii), "_.:#");
}

TEST(Sparkline, ShowsGapsAndValuesThatAreNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto points = Points({{10, 5}, {13, inf}, {14, 5}});

  EXPECT_EQ(Sparkline(points, {.from = 10, .width = 1, .count = 6}, Glyphs::kAscii), "_  !_ ");
}

TEST(Sparkline, ShowsTheLargestFloatsAndOnlyInfinities) {
  const double large = std::numeric_limits<float>::max();
  EXPECT_EQ(Sparkline(Points({{0, -large}, {1, large}}), {.count = 2}, Glyphs::kAscii), "_#");
  EXPECT_EQ(Sparkline(Points({{0, 1 / 0.0}}), {.count = 1}, Glyphs::kAscii), "!");
  EXPECT_EQ(Sparkline({}, {.count = 3}, Glyphs::kAscii), "   ");
}

TEST(TimeColumns, AreTheBucketsOfAllCurvesIfTheyFit) {
  Curves curves;
  curves.series.push_back({.name = "a", .points = Points({{16, 1}, {20, 1}, {32, 1}})});
  curves.series.push_back({.name = "b", .points = Points({{40, 1}})});

  const TimeColumns columns = ColumnsOf(curves, 60);

  EXPECT_EQ(columns.from, 16);
  EXPECT_EQ(columns.width, 4);
  EXPECT_EQ(columns.count, 7);
}

TEST(TimeColumns, AreAtMostTheAllowedNumber) {
  Curves curves;
  curves.series.push_back({.points = Points({{0, 1}, {1, 1}, {1'000'000, 1}})});

  const TimeColumns columns = ColumnsOf(curves, 60);

  EXPECT_LE(columns.count, 60);
  EXPECT_GT(columns.count, 50);
  EXPECT_GE(columns.width * static_cast<int64_t>(columns.count), 1'000'001);
  EXPECT_EQ(ColumnsOf({}, 60).count, 1);
}

}  // namespace
}  // namespace edl::cli
