#include "telemetry/frame.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::telemetry {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Point PointOf(uint8_t series, const std::vector<double>& values, int64_t step = -1) {
  Point point{.series = SeriesId(series)};
  for (const double value : values) point.Add(value, step);
  return point;
}

TEST(Point, HasTheLastTheSmallestAndTheLargestValueAndTheirCount) {
  const Point point = PointOf(1, {2, -5, 7, 3}, 40);

  EXPECT_EQ(point.last, 3);
  EXPECT_EQ(point.min, -5);
  EXPECT_EQ(point.max, 7);
  EXPECT_EQ(point.count, 4);
  EXPECT_EQ(point.step, 40);
  EXPECT_FALSE(point.not_finite);
}

TEST(Point, MarksValuesThatAreNotFiniteAndDoesNotCountThem) {
  const Point mixed = PointOf(1, {2, kNan, -kInfinity}, 7);
  const Point none = PointOf(1, {kInfinity});

  EXPECT_TRUE(mixed.not_finite);
  EXPECT_EQ(mixed.count, 1);
  EXPECT_EQ(mixed.last, 2);
  EXPECT_TRUE(none.not_finite);
  EXPECT_EQ(none.count, 0);
  EXPECT_FALSE(none.empty());
}

TEST(Point, CutsFiniteValuesThatAreTooLarge) {
  const Point point = PointOf(1, {1e300, -1e300});

  EXPECT_EQ(point.max, std::numeric_limits<float>::max());
  EXPECT_EQ(point.min, std::numeric_limits<float>::lowest());
  EXPECT_FALSE(point.not_finite);
}

TEST(Point, OfPartsIsThatOfAllValues) {
  Point merged = PointOf(1, {4, 2}, 10);
  merged.Merge(PointOf(1, {9, 3}, 11));
  merged.Merge(PointOf(1, {kNan}));

  Point all = PointOf(1, {4, 2, 9, 3}, 11);
  all.Add(kNan, -1);
  EXPECT_EQ(merged, all);
}

TEST(Frame, IsReadAsItWasWritten) {
  std::vector<Point> points = {PointOf(0, {1.5}), PointOf(3, {1, 2, 3}, 0), PointOf(4, {kNan}, 17),
                               PointOf(127, {-1e30, 1e-30, kInfinity}, Point::kMostStep)};
  points[1].count = Point::kMostCount;

  const std::string bytes = EncodeFrame(points);

  ASSERT_OK_AND_ASSIGN(const std::vector<Point> read, DecodeFrame(bytes));
  EXPECT_EQ(read, points);
  EXPECT_EQ(EncodeFrame(read), bytes);
  EXPECT_EQ(EncodeFrame({points[0]}).size(), 6);  // the most frequent kind of point
}

TEST(Frame, TakesTheSizeThatTheBudgetCountsWithAtMost) {
  Point point{.series = SeriesId(1),
              .not_finite = true,
              .count = Point::kMostCount,
              .last = 2,
              .min = 1,
              .max = 3,
              .step = Point::kMostStep};

  EXPECT_EQ(EncodeFrame({point}).size(), kLargestPoint);
}

TEST(Frame, CutsLargerCountsAndSteps) {
  Point point = PointOf(1, {1}, std::numeric_limits<int64_t>::max());
  point.count = Point::kMostCount;
  point.Merge(point);

  ASSERT_OK_AND_ASSIGN(const std::vector<Point> read, DecodeFrame(EncodeFrame({point})));
  EXPECT_EQ(read[0].count, Point::kMostCount);
  EXPECT_EQ(read[0].step, Point::kMostStep);
}

TEST(Frame, ThatIsDamagedIsAnError) {
  const std::string good = EncodeFrame({PointOf(1, {1, 2, 3}, 300), PointOf(2, {1})});
  for (size_t size = 1; size < good.size(); ++size) {
    if (size == EncodeFrame({PointOf(1, {1, 2, 3}, 300)}).size()) continue;
    EXPECT_EQ(DecodeFrame(std::string_view(good).substr(0, size)).status().code(), Code::kDataLoss)
        << size;
  }
  const std::string infinite("\x01\x04\x00\x00\x80\x7f", 6);
  const std::string empty("\x01\x00", 2);
  const std::string longer_than_needed("\x01\x84\x00\x00\x00\x80\x3f", 7);
  const std::string endless_count("\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
  const std::string unsorted = EncodeFrame({PointOf(2, {1})}) + EncodeFrame({PointOf(1, {1})});
  const std::string twice = EncodeFrame({PointOf(1, {1})}) + EncodeFrame({PointOf(1, {1})});
  // last 1, min 2, max 3
  const std::string last_below_min("\x01\x06\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40", 14);
  for (const std::string& bytes :
       {infinite, empty, longer_than_needed, endless_count, unsorted, twice, last_below_min}) {
    EXPECT_EQ(DecodeFrame(bytes).status().code(), Code::kDataLoss) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace edl::telemetry
