#include "ps/watermarks.h"

#include <algorithm>

namespace edl::ps {

// Sets `watermark` to the lowest watermark, and clears `differs` if all watermarks are equal.
void Watermarks::SettleOne(Shard& shard) {
  const auto [least, most] = std::ranges::minmax_element(shard.differs);
  shard.watermark = *least;
  if (*least == *most) shard.differs.clear();
}

Result<uint64_t> Watermarks::Open(job::LeaseId lease, const wire::ShardKey& shard) {
  if (lease < floor_) {
    return Aborted("lease {} has ended: the lowest open lease is {}", lease, floor_);
  }
  const auto [entry, is_new] = shards_.try_emplace(shard);
  Shard& found = entry->second;
  if (lease < found.lease) {
    return Aborted("lease {} has ended: its shard has the newer lease {}", lease, found.lease);
  }
  found.lease = lease;
  found.used = ++uses_;
  const uint64_t watermark = found.watermark;
  if (is_new && lease == job::kOwnLease && ++own_shards_ > kMostOwnShards) ForgetOldOwnShards();
  return watermark;
}

// Drops an eighth of them at a time, so that it is seldom necessary.
void Watermarks::ForgetOldOwnShards() {
  std::vector<uint64_t> used;
  for (const auto& [key, shard] : shards_) {
    if (shard.lease == job::kOwnLease) used.push_back(shard.used);
  }
  const size_t most = kMostOwnShards - kMostOwnShards / 8;
  own_shards_ = std::min(used.size(), most);
  if (used.size() <= most) return;
  const auto last_gone = used.begin() + static_cast<ptrdiff_t>(used.size() - most - 1);
  std::nth_element(used.begin(), last_gone, used.end());
  size_t gone = used.size() - most;
  std::erase_if(shards_, [&, at_most = *last_gone](const auto& entry) {
    const Shard& shard = entry.second;
    if (shard.lease != job::kOwnLease || shard.used > at_most || gone == 0) return false;
    --gone;
    return true;
  });
}

Watermarks::BatchCheck Watermarks::Peek(job::LeaseId lease, const wire::ShardKey& shard,
                                        uint64_t batch) const {
  if (lease < floor_) return {.outcome = Outcome::kFenced};
  const auto found = shards_.find(shard);
  // A lease that is newer than the shard's was never opened here.
  if (found == shards_.end() || lease > found->second.lease) return {.outcome = Outcome::kNotOpen};
  const Shard& known = found->second;
  if (lease < known.lease) return {.outcome = Outcome::kFenced};
  if (batch < known.watermark) return {.outcome = Outcome::kAlready, .watermark = known.watermark};
  if (batch > known.watermark) return {.outcome = Outcome::kAhead, .watermark = known.watermark};
  return {.outcome = Outcome::kApplied, .watermark = known.watermark};
}

Watermarks::BatchCheck Watermarks::Count(job::LeaseId lease, const wire::ShardKey& shard,
                                         uint64_t batch) {
  BatchCheck check = Peek(lease, shard, batch);
  if (check.outcome != Outcome::kApplied) return check;
  Shard& known = shards_.find(shard)->second;
  known.used = ++uses_;
  if (known.differs.empty()) {
    ++known.watermark;
  } else {
    std::vector<bool> lacked(size_);
    for (size_t i = 0; i < size_; ++i) {
      lacked[i] = known.differs[i] == batch;
      if (lacked[i]) ++known.differs[i];
    }
    SettleOne(known);
    check.lacked = std::move(lacked);
  }
  check.watermark = known.watermark;
  return check;
}

void Watermarks::Drop(const checkpoint::ShardSet& covered) {
  std::erase_if(shards_, [&](const auto& entry) {
    const wire::ShardKey& key = entry.first;
    return key.ledger == covered.ledger && entry.second.lease < floor_ &&
           covered.Contains(key.dataset, key.generation, key.epoch, key.ordinal);
  });
}

std::vector<Watermarks::Entry> Watermarks::Entries() const {
  std::vector<Entry> entries;
  entries.reserve(shards_.size());
  for (const auto& entry : shards_) {
    const Shard& known = entry.second;
    const auto watermark_of = [&](size_t i) {
      return known.differs.empty() ? known.watermark : known.differs[i];
    };
    for (size_t begin = 0, end = 0; begin < size_; begin = end) {
      end = known.differs.empty() ? size_ : begin + 1;
      while (end < size_ && watermark_of(end) == watermark_of(begin)) ++end;
      entries.push_back({.first = static_cast<wire::Bucket>(first_ + begin),
                         .end = first_ + end,
                         .shard = entry.first,
                         .lease = known.lease,
                         .watermark = watermark_of(begin)});
    }
  }
  return entries;
}

void Watermarks::Restore(const Entry& entry) {
  const size_t begin = std::max<size_t>(entry.first, first_);
  const size_t end = std::min(entry.end, first_ + size_);
  if (begin >= end) return;
  const auto [found, is_new] = shards_.try_emplace(entry.shard);
  Shard& shard = found->second;
  if (is_new && entry.lease == job::kOwnLease) ++own_shards_;
  if (shard.differs.empty()) shard.differs.resize(size_, shard.watermark);
  shard.lease = std::max(shard.lease, entry.lease);
  std::fill(shard.differs.begin() + static_cast<ptrdiff_t>(begin - first_),
            shard.differs.begin() + static_cast<ptrdiff_t>(end - first_), entry.watermark);
}

void Watermarks::Settle() {
  for (auto& [key, shard] : shards_) {
    if (!shard.differs.empty()) SettleOne(shard);
  }
}

}  // namespace edl::ps
