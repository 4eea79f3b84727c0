#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// Reads the output of a container by byte offset, although the API only supports times. Continuing
// where the last read ended fetches only new output; any other read fetches all of it. Offsets
// count the output that the node still keeps: they restart when the node rotates the log.
//
// Confined.
class PodLog {
 public:
  // Returns the output with the time in front of each line, from `since` (a time of such a line)
  // on; all of it if `since` is empty.
  using Fetch = std::function<Result<std::string>(const std::string& since)>;

  // See Backend::Logs.
  Result<LogPiece> Read(int64_t offset, int64_t at_most, const Fetch& fetch);

 private:
  // Strips the times from `fetched`, drops lines that were seen before, and remembers the end.
  std::string TakeNew(std::string_view fetched);

  std::string last_time_;      // of the last line seen
  int64_t lines_at_last_ = 0;  // lines seen with that time
  int64_t seen_ = 0;           // bytes
  std::string unread_;         // seen, and not returned yet
};

}  // namespace edl::backend::kubernetes
