#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl::kube {

// One event of a watch.
struct WatchEvent {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  nlohmann::json object;  // kError: a Status
};

// Cuts the body of a watch into events: one JSON text a line, however the bytes are split.
//
// Confined.
class WatchFrames {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;  // of one event; objects are a few MB

  // What `bytes` completed, in order. DataLoss: not what an API server sends; the watch is of no
  // further use, and neither is this.
  Result<std::vector<WatchEvent>> Feed(std::string_view bytes);

 private:
  std::string rest_;  // of a line that is not complete
};

}  // namespace edl::kube
