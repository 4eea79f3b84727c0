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
  nlohmann::json object;  // for kError: a Status object
};

// Parses the body of a watch into events: one JSON object per line, in whatever pieces the bytes
// arrive. Keeps the values down to kDeepestAnswer.
//
// Confined.
class WatchFrames {
 public:
  static constexpr size_t kMaxEventBytes = size_t{64} << 20;  // API objects are a few MB at most

  // Returns the events that `bytes` completed, in order. DataLoss: the input is not a watch of an
  // API server; neither the watch nor this object can be used any more.
  Result<std::vector<WatchEvent>> Feed(std::string_view bytes);

 private:
  std::string rest_;  // an incomplete line
};

}  // namespace edl::kube
