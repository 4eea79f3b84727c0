#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ps/bucket_range.h"
#include "ps/gradients.h"

namespace edl::ps {

// Counts the optimizer steps of each bucket of a lane, and applies gradients with these counts:
// optimizers such as Adam depend on the number of the step. A step is a push, or a synchronous
// round.
//
// The buckets agree unless they were restored from lanes that were saved at different steps. While
// they agree, the gradients of a table are applied in one call. Confined to the lane's thread.
class BucketSteps {
 public:
  explicit BucketSteps(const BucketRange& buckets) : buckets_(buckets) {}

  // Counts a step of the buckets in `taking`. Call it once before the Apply calls of the step.
  void Begin(const BucketSubset& taking);
  // Applies gradients to the rows or blocks of the buckets in `taking`.
  // REQUIRES: the ids belong to this lane.
  void Apply(const TableGradients& gradients, const BucketSubset& taking) const;
  void Apply(const TensorGradients& gradients, const BucketSubset& taking) const;

  // Steps that began since the lane started or was restored.
  uint64_t version() const { return version_; }
  // The steps of each bucket of the lane, over the whole job.
  std::span<const uint64_t> counts() const { return {&counts_[buckets_.first], buckets_.size()}; }

  // Sets the count of a bucket of this lane. REQUIRES: Settle() is called before the next step.
  void Restore(wire::Bucket bucket, uint64_t count) { counts_[bucket] = count; }
  // Ends a restore: call it after the last Restore(). The version starts at 0 again.
  void Settle();

 private:
  void Compare();

  BucketRange buckets_;
  std::array<uint64_t, wire::kBuckets> counts_{};  // by bucket
  bool agree_ = true;                              // all buckets of the lane have the same count
  uint64_t most_ = 0;  // the largest count: the age of rows refers to it
  uint64_t version_ = 0;
};

}  // namespace edl::ps
