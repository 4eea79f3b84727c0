#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/frame.h"

#include "base/status.h"

namespace edl::telemetry {

// What to read from a store.
struct Query {
  static constexpr size_t kDefaultPoints = 300;
  static constexpr size_t kMostPoints = 1000;

  std::vector<std::string> series;  // names; empty: all series
  int64_t from = 0;                 // seconds since 1970
  int64_t to = std::numeric_limits<int64_t>::max();
  size_t max_points = kDefaultPoints;  // of a series. 0: the default; at most kMostPoints
};

// The points of a series over time.
struct Curve {
  struct Point {
    int64_t time = 0;  // when its bucket began: seconds since 1970
    telemetry::Point values;
  };
  std::string name;
  std::string unit;           // "rows/s"; empty: it has none
  std::vector<Point> points;  // in the order of time; a bucket without a value has no point
};

// What `elasticdl report --output=json` prints: docs/telemetry.md. Only this class reads and writes
// the format.
struct Curves {
  std::vector<Curve> series;
  int64_t dropped_series = 0;  // that had no room in the store

  std::string ToJson() const;
  // InvalidArgument: it cannot be parsed.
  static Result<Curves> FromJson(std::string_view text);
};

}  // namespace edl::telemetry
