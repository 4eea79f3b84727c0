#include "kube/watch_stream.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "kube/api_status.h"

namespace edl::kube {

Result<std::optional<WatchEvent>> WatchStream::Next() {
  while (parsed_.empty()) {
    EDL_ASSIGN_OR_RETURN(const std::string bytes, bytes_->Read());
    if (bytes.empty()) return std::optional<WatchEvent>();
    EDL_ASSIGN_OR_RETURN(std::vector<WatchEvent> events, frames_.Feed(bytes));
    parsed_.insert(parsed_.end(), std::make_move_iterator(events.begin()),
                   std::make_move_iterator(events.end()));
  }
  WatchEvent event = std::move(parsed_.front());
  parsed_.pop_front();
  if (event.kind != WatchEvent::Kind::kError) return std::optional<WatchEvent>(std::move(event));
  const Status error = StatusOfObject(Dump(event.object));
  if (error.ok()) return DataLoss("an ERROR event of a watch contains no error");
  return error;
}

}  // namespace edl::kube
