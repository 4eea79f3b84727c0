#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/curves.h"

namespace edl::cli {

// A span of time that is divided into columns of equal length.
struct TimeColumns {
  int64_t from = 0;   // seconds since 1970
  int64_t width = 1;  // of a column, in seconds
  size_t count = 1;
};

// As many columns as there are buckets in the span of all curves, but at most `most`.
TimeColumns ColumnsOf(const telemetry::Curves& curves, size_t most);

enum class Glyphs { kUnicode, kAscii };

// A curve as one line with a character for each column: a block as high as the last value in the
// column, a space if there is none, and "!" if no value in the column is finite.
std::string Sparkline(const std::vector<telemetry::Curve::Point>& points,
                      const TimeColumns& columns, Glyphs glyphs);

}  // namespace edl::cli
