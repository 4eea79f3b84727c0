#include "cli/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace edl::cli {
namespace {

constexpr size_t kHeights = 8;
constexpr std::array<const char*, kHeights> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, kHeights> kLetters = {"_", ".", ":", "-", "=", "+", "*", "#"};

}  // namespace

TimeColumns ColumnsOf(const telemetry::Curves& curves, size_t most) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t from = kNone;
  int64_t last = 0;
  int64_t bucket = kNone;
  for (const telemetry::Curve& curve : curves.series) {
    if (curve.points.empty()) continue;
    from = std::min(from, curve.points.front().time);
    last = std::max(last, curve.points.back().time);
    for (size_t i = 1; i < curve.points.size(); ++i) {
      bucket = std::min(bucket, curve.points[i].time - curve.points[i - 1].time);
    }
  }
  if (from == kNone) return {};
  if (bucket == kNone || bucket <= 0) bucket = 1;
  const int64_t buckets = (last - from) / bucket + 1;
  const auto limit = static_cast<int64_t>(most);
  const int64_t in_column = (buckets + limit - 1) / limit;
  return {.from = from,
          .width = bucket * in_column,
          .count = static_cast<size_t>((buckets + in_column - 1) / in_column)};
}

std::string Sparkline(const std::vector<telemetry::Curve::Point>& points,
                      const TimeColumns& columns, Glyphs glyphs) {
  std::vector<std::optional<float>> values(columns.count);
  std::vector<bool> marked(columns.count);
  float low = std::numeric_limits<float>::max();
  float high = std::numeric_limits<float>::lowest();
  for (const telemetry::Curve::Point& point : points) {
    const int64_t column = (point.time - columns.from) / columns.width;
    if (point.time < columns.from || column >= static_cast<int64_t>(columns.count)) continue;
    const auto place = static_cast<size_t>(column);
    if (point.values.count == 0) {
      marked[place] = true;
      continue;
    }
    values[place] = point.values.last;
    low = std::min(low, point.values.last);
    high = std::max(high, point.values.last);
  }
  const auto& heights = glyphs == Glyphs::kUnicode ? kBlocks : kLetters;
  std::string line;
  for (size_t i = 0; i < columns.count; ++i) {
    if (!values[i]) {
      line += marked[i] ? '!' : ' ';
      continue;
    }
    // In double, because the difference of two floats may not be a finite float.
    const double share = high > low ? (double{*values[i]} - low) / (double{high} - low) : 0;
    line += heights.at(static_cast<size_t>(std::lround(share * (kHeights - 1))));
  }
  return line;
}

}  // namespace edl::cli
