#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ps/bucket_range.h"
#include "ps/bucket_steps.h"
#include "ps/gradients.h"
#include "ps/table.h"
#include "ps/tensor_blocks.h"

namespace edl::ps {

// The synchronous rounds of a lane that are open: gradients that were pushed, and are applied in
// one step when the round has enough contributors. Rows get the sum of their gradients, blocks of
// tensors the average.
//
// Each bucket has its own round and its own contributors, because it has its own watermark. While
// the watermarks agree, the rounds of all buckets close together. Confined to the lane's thread.
class SynchronousRounds {
 public:
  explicit SynchronousRounds(const BucketRange& buckets)
      : buckets_(buckets), contributors_(buckets.size()), contributed_(buckets.size()) {}

  // Sums of the gradients of one table's rows, in the order in which the ids were first pushed.
  struct Rows {
    std::vector<int64_t> ids;
    std::vector<float> gradients;
    std::unordered_map<int64_t, size_t> places;  // the index in `ids`
    float learning_rate = 0;                     // of the last push
  };
  // Sums of the gradients of a lane's blocks of one tensor, one block after the other.
  struct Blocks {
    std::vector<float> gradients;
    float learning_rate = 0;  // of the last push
  };

  // Adds the gradients of one push to the rounds of the buckets in `taking`. Ids of other lanes are
  // skipped.
  void Add(const TableGradients& gradients, const BucketSubset& taking);
  void Add(const TensorGradients& gradients, const BucketSubset& taking);
  // Counts the push as a contributor of the buckets in `taking`.
  void Count(const BucketSubset& taking);

  // Closes the rounds that have at least so many contributors: their gradients become one step of
  // `steps`. Does nothing if there is no such round.
  void Close(uint32_t contributors, BucketSteps& steps);

  // Contributors of the open round of a bucket.
  uint32_t contributors(size_t bucket) const { return contributors_[bucket - buckets_.first]; }
  // Contributors of all rounds of a bucket, open or closed.
  uint64_t contributed(size_t bucket) const { return contributed_[bucket - buckets_.first]; }
  // The smallest and the largest contributed() of the lane's buckets.
  std::pair<uint64_t, uint64_t> ContributedBounds() const;

  // Null: the open rounds have no gradients of that table or tensor.
  const Rows* FindRows(Table& table) const;
  const Blocks* FindBlocks(TensorBlocks& tensor) const;

  // --- restoring ---
  void RestoreCounts(wire::Bucket bucket, uint32_t contributors, uint64_t contributed);
  // Adds the gradient of one row, dim values.
  void AddRow(Table& table, int64_t id, const float* gradient, float learning_rate);
  // The sums of a tensor, zeros if there are none yet.
  Blocks& BlocksOf(TensorBlocks& tensor);

 private:
  std::vector<float> Average(TensorBlocks& tensor, const BucketSubset& closing);
  void Clear(const BucketSubset& closing);
  Rows Without(const Table& table, const Rows& rows, const BucketSubset& closing) const;

  BucketRange buckets_;
  std::vector<uint32_t> contributors_;  // by bucket, of the open round
  std::vector<uint64_t> contributed_;   // by bucket, of all rounds
  std::map<Table*, Rows> rows_;
  std::map<TensorBlocks*, Blocks> blocks_;
};

}  // namespace edl::ps
