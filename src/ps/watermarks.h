#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "job/ids.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps {

// The watermark of each open shard: how many of its batches the buckets of a lane have applied. A
// batch changes each bucket exactly once, however often and by whomever it is sent. Also knows the
// newest lease of each shard, and rejects pushes under an older one.
//
// One watermark serves all buckets of the lane. After a restore the buckets may differ; then each
// has its own. Confined to the lane's thread.
class Watermarks {
 public:
  using Outcome = wire::PushOutcome;

  // For the buckets first..end-1.
  Watermarks(wire::Bucket first, size_t end) : first_(first), size_(end - first) {}

  // Limit of shards with job::kOwnLease. Beyond it the least recently pushed shards are dropped.
  static constexpr size_t kMostOwnShards = 16'384;

  // Opens a shard for pushes under a lease. Returns the first batch that some bucket lacks.
  // Aborted: the lease has ended, or the shard has a newer one.
  Result<uint64_t> Open(job::LeaseId lease, const wire::ShardKey& shard);

  // What the caller has to do with a batch. kApplied: apply it; it is counted already.
  struct BatchCheck {
    Outcome outcome = Outcome::kApplied;
    uint64_t watermark = 0;  // the first batch that some bucket lacks now
    // Whether each bucket of the lane lacked this batch. Without a value: all did.
    std::optional<std::vector<bool>> lacked;
  };
  // Like Count, but changes nothing.
  BatchCheck Peek(job::LeaseId lease, const wire::ShardKey& shard, uint64_t batch) const;
  // Decides about a batch, and counts it if it is to be applied.
  BatchCheck Count(job::LeaseId lease, const wire::ShardKey& shard, uint64_t batch);

  // Ends all leases below `lease`.
  void RaiseFloor(job::LeaseId lease) { floor_ = lease > floor_ ? lease : floor_; }
  job::LeaseId floor() const { return floor_; }
  // Drops the shards that a checkpoint covers and whose leases are all below the floor. Late pushes
  // of such a shard are rejected by the floor.
  void Drop(const checkpoint::ShardSet& covered);

  // What the buckets first..end-1 have applied of a shard, as it is saved and restored.
  struct Entry {
    wire::Bucket first = 0;
    size_t end = 0;
    wire::ShardKey shard;
    job::LeaseId lease;  // the newest that was seen
    uint64_t watermark = 0;

    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> Entries() const;
  // Restores the part of `entry` that is about this lane's buckets.
  // REQUIRES: nothing was opened or counted yet, and Settle() comes before it is.
  void Restore(const Entry& entry);
  // Ends a restore, after the last Restore().
  void Settle();

  size_t shards() const { return shards_.size(); }

 private:
  struct Shard {
    uint64_t used = 0;  // when it was opened or counted last
    job::LeaseId lease;
    uint64_t watermark = 0;         // of all buckets, or the lowest of them
    std::vector<uint64_t> differs;  // by bucket, where they do not agree; else empty
  };

  static void SettleOne(Shard& shard);
  void ForgetOldOwnShards();

  wire::Bucket first_;
  size_t size_;
  job::LeaseId floor_;
  uint64_t uses_ = 0;
  size_t own_shards_ = 0;  // with job::kOwnLease, or more
  std::unordered_map<wire::ShardKey, Shard, wire::ShardKeyHash> shards_;
};

}  // namespace edl::ps
