#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/shard_set.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps {

// How many batches of each open shard the buckets of a lane have applied, and who may push more:
// by it a batch changes every bucket once, whoever sends it how often. While all buckets of the
// lane agree on a shard there is one mark for them; after a restore they may not, and then there is
// one for each. Confined.
class Marks {
 public:
  using Outcome = wire::PushAnswer::Outcome;

  // Of the buckets first..end-1.
  Marks(wire::Bucket first, size_t end) : first_(first), size_(end - first) {}

  // The lease of clients that count batches by themselves, without a master: it is never over.
  static constexpr uint64_t kOwnLease = UINT64_MAX;
  // Shards with it are remembered up to so many. Above that those that were not pushed for longest
  // are forgotten: their clients are long gone.
  static constexpr size_t kMostOwnShards = 16'384;

  // A worker is about to push a shard under a lease: tells the first batch that a bucket lacks.
  // FailedPrecondition: the lease is over, or the shard has a newer one.
  Result<uint64_t> Open(uint64_t lease, const wire::ShardKey& shard);

  // What is to be done with a batch; kApplied has counted it as applied already.
  struct Verdict {
    Outcome outcome = Outcome::kApplied;
    uint64_t mark = 0;  // the first batch that a bucket lacks now
    // The buckets that lacked this batch, by number from the lane's first on; none: all did.
    std::optional<std::vector<bool>> lacked;
  };
  // As Count, and counts nothing.
  Verdict Look(uint64_t lease, const wire::ShardKey& shard, uint64_t batch) const;
  Verdict Count(uint64_t lease, const wire::ShardKey& shard, uint64_t batch);

  // Leases below it are over.
  void RaiseFloor(uint64_t lease) { floor_ = lease > floor_ ? lease : floor_; }
  uint64_t floor() const { return floor_; }
  // Forgets shards that no restore will ask for and whose every lease is below the floor: what is
  // still pushed under one is refused by that.
  void Drop(const job::ShardSet& covered);

  // What the buckets first..end-1 are known to have applied of a shard: for saving and restoring.
  struct Entry {
    wire::Bucket first = 0;
    size_t end = 0;
    wire::ShardKey shard;
    uint64_t lease = 0;  // the newest that was seen
    uint64_t mark = 0;

    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> Entries() const;
  // Takes what is said of this lane's buckets.
  // REQUIRES: nothing was opened or counted yet, and Settle() comes before it is.
  void Restore(const Entry& entry);
  // All buckets are restored.
  void Settle();

  size_t shards() const { return shards_.size(); }

 private:
  struct Shard {
    uint64_t used = 0;  // when it was opened or counted last
    uint64_t lease = 0;
    uint64_t mark = 0;              // of all buckets, or the lowest
    std::vector<uint64_t> differs;  // by bucket, where they do not agree; else empty
  };

  static void SettleOne(Shard& shard);
  void ForgetOldOwnShards();

  wire::Bucket first_;
  size_t size_;
  uint64_t floor_ = 0;
  uint64_t uses_ = 0;
  size_t own_shards_ = 0;  // with kOwnLease, or more
  std::unordered_map<wire::ShardKey, Shard, wire::ShardKeyHash> shards_;
};

}  // namespace edl::ps
