#include "kube/watch_stream.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "kube/api_status.h"

namespace edl::kube {

Result<std::optional<WatchEvent>> WatchStream::Next() {
  while (waiting_.empty()) {
    EDL_ASSIGN_OR_RETURN(const std::string bytes, bytes_->Read());
    if (bytes.empty()) return std::optional<WatchEvent>();
    EDL_ASSIGN_OR_RETURN(std::vector<WatchEvent> events, frames_.Feed(bytes));
    waiting_.insert(waiting_.end(), std::make_move_iterator(events.begin()),
                    std::make_move_iterator(events.end()));
  }
  WatchEvent event = std::move(waiting_.front());
  waiting_.pop_front();
  if (event.kind != WatchEvent::Kind::kError) return std::optional<WatchEvent>(std::move(event));
  const Status meant = StatusOfObject(Dump(event.object));
  if (meant.ok()) return DataLoss("a watch sent an error that is none");
  return meant;
}

}  // namespace edl::kube
