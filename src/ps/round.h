#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "ps/table.h"
#include "ps/tensor_share.h"
#include "wire/placement.h"

namespace edl::ps {

// The gradients of a synchronous round that is not full yet: of rows their sums, of blocks their
// sums and how many there are. Every bucket has its own round, as it has its own marks; while they
// agree, all are full at once. Confined to the lane's thread.
class Round {
 public:
  // For the buckets first..end-1.
  Round(wire::Bucket first, size_t end)
      : first_(first), contributors_(end - first), contributed_(end - first) {}

  // Gradients of the rows of one table, in the order in which their ids came first.
  struct Rows {
    std::vector<int64_t> ids;
    std::vector<float> gradients;
    std::unordered_map<int64_t, size_t> places;  // of ids
    float learning_rate = 0;                     // of the last that came
  };
  // Gradients of a lane's blocks of one tensor, one after the other.
  struct Blocks {
    std::vector<float> gradients;
    float learning_rate = 0;
  };

  void Add(Table& table, int64_t id, const float* gradient, float learning_rate);
  // Adds to the blocks for which `takes` (their bucket) is true.
  template <typename Takes>
  void Add(TensorShare& tensor, const float* gradients, float learning_rate, const Takes& takes) {
    Blocks& blocks = BlocksOf(tensor);
    blocks.learning_rate = learning_rate;
    float* sum = blocks.gradients.data();
    for (const TensorShare::Block& block : tensor.blocks()) {
      if (takes(block.bucket)) {
        for (size_t i = 0; i < block.values; ++i) sum[i] += gradients[i];
      }
      sum += block.values;
      gradients += block.values;
    }
  }
  // The bucket has one more.
  void Count(wire::Bucket bucket) {
    ++contributors_[bucket - first_];
    ++contributed_[bucket - first_];
  }

  uint32_t contributors(wire::Bucket bucket) const { return contributors_[bucket - first_]; }
  // Over all rounds.
  uint64_t contributed(wire::Bucket bucket) const { return contributed_[bucket - first_]; }
  void Restore(wire::Bucket bucket, uint32_t contributors, uint64_t contributed) {
    contributors_[bucket - first_] = contributors;
    contributed_[bucket - first_] = contributed;
  }

  std::map<Table*, Rows>& rows() { return rows_; }
  std::map<TensorShare*, Blocks>& blocks() { return blocks_; }
  Blocks& BlocksOf(TensorShare& tensor);

  // The average of what the blocks have that `closes` (their bucket); of the others whatever.
  template <typename Closes>
  std::vector<float> Average(TensorShare& tensor, const Closes& closes) {
    std::vector<float> average = BlocksOf(tensor).gradients;
    float* values = average.data();
    for (const TensorShare::Block& block : tensor.blocks()) {
      if (closes(block.bucket)) {
        const float share = 1.0F / static_cast<float>(contributors(block.bucket));
        for (size_t i = 0; i < block.values; ++i) values[i] *= share;
      }
      values += block.values;
    }
    return average;
  }
  // Begins anew for the buckets that `closes`.
  template <typename Closes>
  void Clear(const Closes& closes) {
    for (auto& [table, rows] : rows_) rows = Without(*table, rows, closes);
    for (auto& [tensor, blocks] : blocks_) {
      float* values = blocks.gradients.data();
      for (const TensorShare::Block& block : tensor->blocks()) {
        if (closes(block.bucket)) std::fill_n(values, block.values, 0.0F);
        values += block.values;
      }
    }
    for (size_t i = 0; i < contributors_.size(); ++i) {
      if (closes(static_cast<wire::Bucket>(first_ + i))) contributors_[i] = 0;
    }
  }

 private:
  template <typename Closes>
  static Rows Without(const Table& table, const Rows& rows, const Closes& closes) {
    Rows left{.learning_rate = rows.learning_rate};
    const size_t dim = table.spec().dim;
    for (size_t i = 0; i < rows.ids.size(); ++i) {
      if (closes(wire::BucketOf(rows.ids[i]))) continue;
      left.places[rows.ids[i]] = left.ids.size();
      left.ids.push_back(rows.ids[i]);
      left.gradients.insert(left.gradients.end(), rows.gradients.data() + i * dim,
                            rows.gradients.data() + (i + 1) * dim);
    }
    return left;
  }

  wire::Bucket first_;
  std::vector<uint32_t> contributors_;  // by bucket, of the round that is open
  std::vector<uint64_t> contributed_;   // by bucket, ever
  std::map<Table*, Rows> rows_;
  std::map<TensorShare*, Blocks> blocks_;
};

}  // namespace edl::ps
