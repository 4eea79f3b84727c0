#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// Reads a container's output by byte offsets, of which the API knows nothing: it has times. Reading
// on where the last read ended costs what is new; any other read costs the whole output. Offsets
// count what the node still keeps: they start over when it has rotated the output away.
//
// Confined.
class PodLog {
 public:
  // The output with each line's time in front, from `since` on, a time of these, or all of it.
  using Fetch = std::function<Result<std::string>(const std::string& since)>;

  // As Backend::Logs.
  Result<LogPiece> Read(int64_t offset, int64_t at_most, const Fetch& fetch);

 private:
  // Takes the times out of `fetched`, leaves out what was seen before, and remembers where it ends.
  std::string TakeNew(std::string_view fetched);

  std::string last_time_;      // of the last line seen
  int64_t lines_at_last_ = 0;  // seen so far with that time
  int64_t seen_ = 0;           // bytes
  std::string unread_;         // seen, and not asked for yet
};

}  // namespace edl::backend::kubernetes
