#include "master/sync/staleness_tracker.h"

#include <algorithm>
#include <utility>

namespace edl::master {
namespace {

// More batches than any job trains, and small enough that sums of a few cannot overflow.
constexpr uint64_t kMost = uint64_t{1} << 40;

}  // namespace

void StalenessTracker::Await(Incarnation session, uint64_t batches, uint64_t ahead, Time until,
                             Reply reply) {
  Answer(session, false);
  const auto own = static_cast<int64_t>(std::min(batches, kMost));
  const auto [place, is_new] = progress_.try_emplace(session, Progress{.begin = Slowest() - own});
  auto& [begin, now] = place->second;
  if (!is_new) counts_.erase(counts_.find(now));
  now = begin + own;
  counts_.insert(now);
  const int64_t at_least = now - static_cast<int64_t>(std::min(ahead, kMost));
  waiting_[session] = {at_least, std::move(reply)};
  by_need_.emplace(at_least, session);
  deadlines_.Set(session, until);
  Settle();
}

void StalenessTracker::Leave(Incarnation session) {
  Answer(session, false);
  const auto found = progress_.find(session);
  if (found == progress_.end()) return;
  counts_.erase(counts_.find(found->second.batches));
  progress_.erase(found);
  Settle();
}

void StalenessTracker::Settle() {
  while (!by_need_.empty() && by_need_.begin()->first <= Slowest()) {
    Answer(by_need_.begin()->second, true);
  }
}

void StalenessTracker::Tick(Time now) {
  while (const std::optional<Incarnation> session = deadlines_.TakeDue(now)) {
    Answer(*session, false);
  }
}

void StalenessTracker::Answer(Incarnation session, bool ready) {
  const auto found = waiting_.find(session);
  if (found == waiting_.end()) return;
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  by_need_.erase({waiting.at_least, session});
  deadlines_.Remove(session);
  waiting.reply(ready);
}

}  // namespace edl::master
