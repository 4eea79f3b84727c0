#include "backend/kubernetes/pod_log.h"

#include <algorithm>

namespace edl::backend::kubernetes {

std::string PodLog::TakeNew(std::string_view fetched) {
  std::string out;
  int64_t at_last = 0;  // lines passed with the time of the last line seen
  while (!fetched.empty()) {
    const size_t line_end = std::min(fetched.find('\n'), fetched.size() - 1) + 1;
    std::string_view line = fetched.substr(0, line_end);
    fetched.remove_prefix(line_end);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;  // truncated within its time
    const std::string_view time = line.substr(0, space);
    line.remove_prefix(space + 1);
    // Times have a fixed width, so they compare as text.
    if (time < last_time_) continue;
    if (time == last_time_ && ++at_last <= lines_at_last_) continue;
    if (time != last_time_) {
      last_time_ = time;
      at_last = 1;
    }
    lines_at_last_ = at_last;
    out += line;
  }
  seen_ += static_cast<int64_t>(out.size());
  return out;
}

Result<LogPiece> PodLog::Read(int64_t offset, int64_t at_most, const Fetch& fetch) {
  at_most = std::max<int64_t>(at_most, 0);
  const int64_t unread_at = seen_ - static_cast<int64_t>(unread_.size());
  if (offset < 0 || offset != unread_at) {
    PodLog all;
    EDL_ASSIGN_OR_RETURN(const std::string fetched, fetch(""));
    all.unread_ = all.TakeNew(fetched);
    const int64_t begin =
        std::clamp<int64_t>(offset < 0 ? all.seen_ + offset : offset, 0, all.seen_);
    all.unread_.erase(0, static_cast<size_t>(begin));
    *this = std::move(all);
  } else if (static_cast<int64_t>(unread_.size()) < at_most) {
    EDL_ASSIGN_OR_RETURN(const std::string fetched, fetch(last_time_));
    unread_ += TakeNew(fetched);
  }
  LogPiece piece;
  const auto size =
      static_cast<size_t>(std::min<int64_t>(at_most, static_cast<int64_t>(unread_.size())));
  piece.text = unread_.substr(0, size);
  unread_.erase(0, size);
  piece.next_offset = seen_ - static_cast<int64_t>(unread_.size());
  return piece;
}

}  // namespace edl::backend::kubernetes
