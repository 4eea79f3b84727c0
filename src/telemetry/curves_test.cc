#include "telemetry/curves.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/testing/status_matchers.h"

namespace edl::telemetry {
namespace {

using nlohmann::json;

Point PointOf(double value, int64_t step) {
  Point point;
  point.Add(value, step);
  return point;
}

TEST(Curves, ArePrintedWithShortNumbersAndNullForValuesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Curve loss{.name = "program.\"loss\"", .unit = "", .points = {{100, PointOf(0.3, 7)}}};
  loss.points.push_back({101, PointOf(nan, 8)});
  loss.points.push_back({102, PointOf(2, -1)});
  loss.points.back().values.Add(nan, -1);
  const Curves curves{.series = {loss}, .dropped_series = 3};

  const json out = ReadJson(curves.ToJson());

  EXPECT_EQ(out["series"][0]["name"], "program.\"loss\"");
  EXPECT_EQ(out["series"][0]["points"],
            ReadJson("[[100,0.3,0.3,0.3,1,7],[101,null,null,null,0,8],[102,2,2,2,1,null]]"));
  EXPECT_EQ(out["series"][0]["not_finite"], ReadJson("[101,102]"));
  EXPECT_EQ(out["dropped_series"], 3);
}

TEST(Curves, AreReadAsTheyWerePrinted) {
  Curve curve{.name = "batches", .unit = "batches", .points = {{1, PointOf(1e30, 5)}}};
  curve.points.push_back({2, PointOf(std::numeric_limits<double>::infinity(), -1)});

  ASSERT_OK_AND_ASSIGN(const Curves read,
                       Curves::FromJson(Curves{.series = {curve}, .dropped_series = 1}.ToJson()));

  ASSERT_EQ(read.series.size(), 1);
  EXPECT_EQ(read.series[0].unit, "batches");
  ASSERT_EQ(read.series[0].points.size(), 2);
  EXPECT_EQ(read.series[0].points[0].values, curve.points[0].values);
  EXPECT_EQ(read.series[0].points[1].values, curve.points[1].values);
  EXPECT_EQ(read.dropped_series, 1);
}

TEST(Curves, OfAnotherFormatAreAnError) {
  for (const char* text :
       {"", "[]", R"({"series":[{}]})", R"({"series":[],"dropped_series":"x"})",
        R"({"series":[{"name":"a","unit":"","points":[[1]],"not_finite":[]}]})"}) {
    EXPECT_EQ(Curves::FromJson(text).status().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace edl::telemetry
