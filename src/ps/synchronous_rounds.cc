#include "ps/synchronous_rounds.h"

#include <algorithm>

namespace edl::ps {

void SynchronousRounds::Add(const TableGradients& gradients, const BucketSubset& taking) {
  const size_t dim = gradients.table->spec().dim;
  for (size_t i = 0; i < gradients.ids.size(); ++i) {
    const wire::Bucket bucket = wire::BucketOf(gradients.ids[i]);
    if (!buckets_.Contains(bucket) || !taking.Contains(bucket)) continue;
    AddRow(*gradients.table, gradients.ids[i], gradients.values + i * dim, gradients.learning_rate);
  }
}

void SynchronousRounds::AddRow(Table& table, int64_t id, const float* gradient,
                               float learning_rate) {
  Rows& rows = rows_[&table];
  rows.learning_rate = learning_rate;
  const size_t dim = table.spec().dim;
  const auto [place, is_new] = rows.places.try_emplace(id, rows.ids.size());
  if (is_new) {
    rows.ids.push_back(id);
    rows.gradients.insert(rows.gradients.end(), gradient, gradient + dim);
    return;
  }
  float* const sum = rows.gradients.data() + place->second * dim;
  for (size_t i = 0; i < dim; ++i) sum[i] += gradient[i];
}

void SynchronousRounds::Add(const TensorGradients& gradients, const BucketSubset& taking) {
  Blocks& blocks = BlocksOf(*gradients.tensor);
  blocks.learning_rate = gradients.learning_rate;
  float* sum = blocks.gradients.data();
  const float* values = gradients.values;
  for (const TensorBlocks::Block& block : gradients.tensor->blocks()) {
    if (taking.Contains(block.bucket)) {
      for (size_t i = 0; i < block.values; ++i) sum[i] += values[i];
    }
    sum += block.values;
    values += block.values;
  }
}

void SynchronousRounds::Count(const BucketSubset& taking) {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (!taking.Contains(static_cast<wire::Bucket>(buckets_.first + i))) continue;
    ++contributors_[i];
    ++contributed_[i];
  }
}

void SynchronousRounds::Close(uint32_t contributors, BucketSteps& steps) {
  std::vector<bool> full(buckets_.size());
  for (size_t i = 0; i < full.size(); ++i) full[i] = contributors_[i] >= contributors;
  if (std::ranges::find(full, true) == full.end()) return;
  const bool all_close = std::ranges::find(full, false) == full.end();
  const BucketSubset closing(buckets_, all_close ? std::nullopt : std::optional(std::move(full)));
  steps.Begin(closing);
  for (auto& [table, rows] : rows_) {
    steps.Apply(TableGradients{table, rows.ids, rows.gradients.data(), rows.learning_rate},
                closing);
  }
  for (auto& [tensor, blocks] : blocks_) {
    const std::vector<float> average = Average(*tensor, closing);
    steps.Apply(TensorGradients{tensor, average.data(), blocks.learning_rate}, closing);
  }
  Clear(closing);
}

std::pair<uint64_t, uint64_t> SynchronousRounds::ContributedBounds() const {
  const auto [least, most] = std::ranges::minmax_element(contributed_);
  return {*least, *most};
}

const SynchronousRounds::Rows* SynchronousRounds::FindRows(Table& table) const {
  const auto found = rows_.find(&table);
  return found == rows_.end() ? nullptr : &found->second;
}

const SynchronousRounds::Blocks* SynchronousRounds::FindBlocks(TensorBlocks& tensor) const {
  const auto found = blocks_.find(&tensor);
  return found == blocks_.end() ? nullptr : &found->second;
}

void SynchronousRounds::RestoreCounts(wire::Bucket bucket, uint32_t contributors,
                                      uint64_t contributed) {
  contributors_[bucket - buckets_.first] = contributors;
  contributed_[bucket - buckets_.first] = contributed;
}

SynchronousRounds::Blocks& SynchronousRounds::BlocksOf(TensorBlocks& tensor) {
  Blocks& blocks = blocks_[&tensor];
  if (blocks.gradients.empty()) blocks.gradients.resize(tensor.values());
  return blocks;
}

// Averages the blocks of `closing`; the others keep their sums.
std::vector<float> SynchronousRounds::Average(TensorBlocks& tensor, const BucketSubset& closing) {
  std::vector<float> average = BlocksOf(tensor).gradients;
  float* values = average.data();
  for (const TensorBlocks::Block& block : tensor.blocks()) {
    if (closing.Contains(block.bucket)) {
      const float share = 1.0F / static_cast<float>(contributors(block.bucket));
      for (size_t i = 0; i < block.values; ++i) values[i] *= share;
    }
    values += block.values;
  }
  return average;
}

void SynchronousRounds::Clear(const BucketSubset& closing) {
  for (auto& [table, rows] : rows_) rows = Without(*table, rows, closing);
  for (auto& [tensor, blocks] : blocks_) {
    float* values = blocks.gradients.data();
    for (const TensorBlocks::Block& block : tensor->blocks()) {
      if (closing.Contains(block.bucket)) std::fill_n(values, block.values, 0.0F);
      values += block.values;
    }
  }
  for (size_t i = 0; i < contributors_.size(); ++i) {
    if (closing.Contains(static_cast<wire::Bucket>(buckets_.first + i))) contributors_[i] = 0;
  }
}

SynchronousRounds::Rows SynchronousRounds::Without(const Table& table, const Rows& rows,
                                                   const BucketSubset& closing) const {
  Rows left{.learning_rate = rows.learning_rate};
  const size_t dim = table.spec().dim;
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    const wire::Bucket bucket = wire::BucketOf(rows.ids[i]);
    if (buckets_.Contains(bucket) && closing.Contains(bucket)) continue;
    left.places[rows.ids[i]] = left.ids.size();
    left.ids.push_back(rows.ids[i]);
    left.gradients.insert(left.gradients.end(), rows.gradients.data() + i * dim,
                          rows.gradients.data() + (i + 1) * dim);
  }
  return left;
}

}  // namespace edl::ps
