#include "master/shards/hang_detector.h"

#include <algorithm>

namespace edl::master {

// Our clients report one shard after another, so work on a shard began after the last report, even
// if many shards were leased at once.
Time HangDetector::BusySince(const Lease& lease, const Session* holder) {
  if (holder == nullptr || holder->compat_api) return lease.since;
  return std::max(lease.since, holder->reported_at);
}

Duration HangDetector::LimitFor(const Session* holder) const {
  const bool compat_api = holder != nullptr && holder->compat_api;
  if (shard_times_.empty() && known_slow_ == Duration::zero() && !compat_api) return kHangAtFirst;
  return std::max<Duration>({kHangAtLeast, 5 * shard_times_.Typical(), known_slow_});
}

void HangDetector::OnDone(const Lease& lease, const Session* holder, Time now) {
  shard_times_.Add(now - BusySince(lease, holder));
}

void HangDetector::OnLateReport(LeaseId lease, Time now) {
  const auto found = reclaimed_.find(lease);
  if (found == reclaimed_.end()) return;
  known_slow_ = std::max(known_slow_, 2 * (now - found->second));
  reclaimed_.erase(found);
}

std::optional<std::vector<HangDetector::Hung>> HangDetector::CheckNext(Time now) {
  const std::optional<Incarnation> holder = checks_.TakeDue(now);
  if (!holder) return std::nullopt;
  std::vector<Hung> hung;
  const std::set<LeaseId>& held = leases_.HeldBy(*holder);
  if (held.empty()) return hung;
  const Session* session = sessions_.Find(*holder);
  const Duration limit = LimitFor(session);
  Duration next = kCheckInterval;
  // The hang clock of a session that waits stands still.
  if (session != nullptr && !waiters_.Waits(*holder)) {
    for (const LeaseId id : held) {
      const Duration busy = now - BusySince(*leases_.Find(id), session);
      if (busy <= limit) {
        next = std::min<Duration>(next, limit - busy + std::chrono::milliseconds(1));
      } else {
        hung.push_back({.lease = id, .busy = busy, .limit = limit});
      }
    }
  }
  checks_.SetAtLatest(*holder, now + next);
  return hung;
}

void HangDetector::OnReclaimed(const Lease& lease, std::string reason) {
  hung_.emplace_back(lease.replica, std::move(reason));
  if (reclaimed_.size() >= kMostRemembered) reclaimed_.erase(reclaimed_.begin());
  reclaimed_[lease.row.lease] = lease.since;
}

}  // namespace edl::master
