#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "job/ids.h"
#include "wire/messages.h"

namespace edl::ps_client {

// Counts the batches of a client that has no master. Parameter servers apply a batch once by its
// lease, its shard and its index within the shard. A worker gets them from its master; a client
// without one takes job::kOwnLease, a shard that no other client has, and counts its batches here.
//
// Open the shard at the servers before or with batch 0. When a batch is lost, no later batch of the
// shard can be applied: the shard is broken, and the client begins another one.
//
// Confined.
class OwnShard {
 public:
  // A shard with a random ledger id.
  OwnShard();

  const wire::ShardKey& key() const { return key_; }
  // The index of the next batch.
  uint64_t Next() { return next_++; }

  // Interprets the servers' outcome of a batch for the code that pushed it.
  // kApplied: the servers have the batch. kStale: compute the batch again, and push it under the
  // index that Next() returns. Later batches that were already sent are stale too.
  // Aborted: a server lacks batches of this client, because it was restarted; the shard is broken.
  Result<wire::PushOutcome> Settle(uint64_t batch, wire::PushOutcome outcome);

  // Call this when the outcome of a batch is unknown.
  void Break() { is_broken_ = true; }
  bool is_broken() const { return is_broken_; }

 private:
  wire::ShardKey key_;
  uint64_t next_ = 0;
  std::optional<uint64_t> stale_from_;  // the first batch that has to be computed again
  bool is_broken_ = false;
};

}  // namespace edl::ps_client
