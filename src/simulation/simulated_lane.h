#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "simulation/simulation.h"
#include "simulation/virtual_time.h"

#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "master/types.h"
#include "ps/watermarks.h"
#include "wire/messages.h"

namespace edl::master {

// Numbers the batches of all shards of a simulated dataset.
struct SimulatedBatches {
  size_t per_shard = 1;
  size_t shards = 1;  // of an epoch
  size_t epochs = 1;

  size_t NumberOf(uint32_t generation, int64_t epoch, uint64_t ordinal, uint64_t batch) const {
    return ((generation * epochs + static_cast<size_t>(epoch)) * shards + ordinal) * per_shard +
           batch;
  }
};

// How often each batch was applied to a bucket, by the batch's number.
using SimulatedBucket = std::vector<uint8_t>;

// What a lane saved.
struct SimulatedPart {
  size_t first = 0;  // bucket
  std::vector<SimulatedBucket> buckets;
  LeaseId floor;
  std::vector<ps::Watermarks::Entry> watermarks;
};

// A lane of a parameter server that counts batches instead of training. It uses the real
// Watermarks, accepts and refuses the same messages as ps/lane_session.cc, and fails the schedule
// when a batch is applied to a bucket twice.
//
// Confined to the thread that runs the simulation.
class SimulatedLane {
 public:
  // The number of buckets of all lanes of all servers.
  static constexpr size_t kBuckets = 9;

  // The lane `place` of `lanes`, counted over all servers.
  SimulatedLane(size_t place, size_t lanes, const SimulatedBatches& batches, Mutant mutant,
                VirtualTime& time, SimulationResult& sums);

  // Open and Push of a worker: answered now, or when the lane serves.
  void Open(LeaseId lease, const wire::ShardKey& shard,
            std::function<void(Result<wire::OpenAnswer>)> answer);
  void Push(LeaseId lease, const wire::ShardKey& shard, uint64_t batch,
            std::function<void(wire::PushAnswer)> answer);

  // Messages of the master. The lane restores the part of `parts` that is in its buckets.
  Status Restore(PsEpoch ps_epoch, const std::vector<SimulatedPart>& parts);
  Status Serve(const wire::Serve& serve);
  Result<SimulatedPart> Cut();

  // When the requested restores are complete.
  Time restored_at() const { return restored_at_; }
  void set_restored_at(Time time) { restored_at_ = time; }

  PsEpoch ps_epoch() const { return ps_epoch_; }
  int64_t opens_waiting() const { return serves_ ? static_cast<int64_t>(waiting_opens_) : 0; }

 private:
  void Clear();
  void Take(const SimulatedPart& part);
  void Apply(const wire::ShardKey& shard, uint64_t batch, const ps::Watermarks::BatchCheck& check);
  // Drops the watermarks of the shards in `covered`, even if a worker may still push them.
  void DropUnfenced(const checkpoint::ShardSet& covered);
  SimulatedPart Content() const;

  const size_t first_;
  const size_t end_;
  const SimulatedBatches& batches_;
  const Mutant mutant_;
  VirtualTime& time_;
  SimulationResult& sums_;
  std::unique_ptr<ps::Watermarks> watermarks_;
  std::vector<SimulatedBucket> buckets_;
  Time restored_at_;
  bool empty_ = true;
  bool serves_ = false;
  bool may_push_ = false;
  PsEpoch ps_epoch_;
  PsEpoch restore_epoch_;
  std::vector<std::function<void()>> waiting_;  // until it serves
  size_t waiting_opens_ = 0;                    // of these
  SimulatedPart before_;                        // kCutsEarly: as it was some time ago
};

}  // namespace edl::master
