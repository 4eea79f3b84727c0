#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"

namespace edl::telemetry {

using SeriesId = StrongId<struct SeriesIdTag, uint8_t>;

// A store has at most so many series.
inline constexpr size_t kMostSeries = 128;

// The values of one series in one bucket of time. Values that are not finite are not part of
// `last`, `min`, `max` and `count`: they set `not_finite`.
struct Point {
  // Larger counts and steps are cut to these.
  static constexpr uint32_t kMostCount = (1U << 26) - 1;
  static constexpr int64_t kMostStep = (int64_t{1} << 49) - 1;

  SeriesId series;
  bool not_finite = false;
  uint32_t count = 0;  // 0: `last`, `min` and `max` have no meaning
  float last = 0;
  float min = 0;
  float max = 0;
  int64_t step = -1;  // of the program at the last value that had one; -1: none had

  bool empty() const { return count == 0 && !not_finite; }
  // Adds a value that is later than all in this point. A negative `step`: it has none.
  void Add(double value, int64_t step);
  // Adds the values of the same series in a later bucket.
  void Merge(const Point& later);
  bool operator==(const Point&) const = default;
};

// A frame is the points of all series in one bucket, sorted by series, as bytes:
// docs/formats/ledger.md. A point takes at most kLargestPoint bytes.
inline constexpr size_t kLargestPoint = 24;
std::string EncodeFrame(const std::vector<Point>& points);
// DataLoss: no EncodeFrame wrote these bytes.
Result<std::vector<Point>> DecodeFrame(std::string_view bytes);

}  // namespace edl::telemetry
