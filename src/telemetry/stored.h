#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/frame.h"

namespace edl::telemetry {

// The name of a series in storage.
struct StoredSeries {
  SeriesId id;
  std::string name;
  std::string unit;
};
// A frame in storage. A frame replaces the one with the same level and slot.
struct StoredFrame {
  int level = 0;
  int slot = 0;
  int64_t start = 0;   // seconds since 1970
  std::string points;  // see EncodeFrame
};
struct Stored {
  std::vector<StoredSeries> series;
  std::vector<StoredFrame> frames;

  bool empty() const { return series.empty() && frames.empty(); }
};

}  // namespace edl::telemetry
