// The input is a frame of telemetry as the ledger stores it; its first two bytes are the place of
// the frame. A decoded frame is encoded to the same bytes, and a store that loads it gives curves.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "telemetry/frame.h"
#include "telemetry/store.h"

#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using edl::telemetry::Store;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto points = edl::telemetry::DecodeFrame(input);
  if (points.ok()) {
    CHECK(edl::telemetry::EncodeFrame(*points) == input,
          "a decoded frame is encoded to other bytes");
  }
  if (size < 2) return 0;
  edl::telemetry::Stored stored;
  for (uint8_t id = 0; id < edl::telemetry::kMostSeries; ++id) {
    stored.series.push_back({edl::telemetry::SeriesId(id), std::to_string(id), ""});
  }
  const int level = data[0] % (Store::kLevels + 1);
  for (int64_t frame = 0; frame < data[1]; ++frame) {
    stored.frames.push_back({.level = level,
                             .slot = static_cast<int>(frame),
                             .start = frame * Store::WidthOf(level),
                             .points = std::string(input.substr(2))});
  }
  Store store;
  if (!store.Load(stored).ok()) return 0;
  CHECK(edl::telemetry::Curves::FromJson(store.Read({}).ToJson()).ok(), "curves are not readable");
  CHECK(store.bytes() <= Store::kMostBytes, "the store takes {} bytes", store.bytes());
  return 0;
}
