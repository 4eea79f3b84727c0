#include "ps/tensor_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace edl::ps {
namespace {

std::unique_ptr<Optimizer> OptimizerOf(const TensorSpec& spec) {
  return spec.optimizer.has_value() ? std::move(*MakeOptimizer(*spec.optimizer)) : nullptr;
}

}  // namespace

TensorBlocks::TensorBlocks(TensorSpec spec, wire::Bucket first, size_t end, SaveNumber save)
    : spec_(std::move(spec)), optimizer_(OptimizerOf(spec_)), save_(save) {
  for (size_t number = 0; number < wire::BlocksOf(spec_.size); ++number) {
    const wire::Bucket bucket = wire::BucketOfBlock(spec_.name, number);
    if (bucket < first || bucket >= end) continue;
    const size_t values = wire::ValuesOfBlock(spec_.size, number);
    blocks_.push_back(
        {.number = number, .bucket = bucket, .values = values, .memory = {}, .save = save});
    values_ += values;
  }
}

size_t TensorBlocks::Put(const float* values) {
  const size_t slots = optimizer_ == nullptr ? 0 : optimizer_->slots();
  size_t taken = 0;
  for (Block& block : blocks_) {
    if (!block.has_value()) {
      // Allocated now, so that a tensor that is only declared takes no memory.
      SaveBefore(block);
      block.memory = wire::Buffer(block.values * (1 + slots) * sizeof(float));
      std::memcpy(block.weights(), values, block.values * sizeof(float));
      if (optimizer_ != nullptr) {
        optimizer_->InitSlots({block.weights() + block.values, block.values * slots});
      }
      ++taken;
    }
    values += block.values;
  }
  return taken;
}

bool TensorBlocks::has_value() const {
  return std::ranges::all_of(blocks_, [](const Block& block) { return block.has_value(); });
}

void TensorBlocks::Pull(float* out) const {
  for (const Block& block : blocks_) {
    std::memcpy(out, block.weights(), block.values * sizeof(float));
    out += block.values;
  }
}

void TensorBlocks::Change(Block& block, const float* gradient, const Step& step) {
  SaveBefore(block);
  float* const weights = block.weights();
  if (optimizer_ != nullptr) {
    optimizer_->Apply({&weights, 1}, block.values, gradient, step);
    return;
  }
  for (size_t i = 0; i < block.values; ++i) weights[i] += gradient[i];
}

void TensorBlocks::SaveBefore(Block& block) {
  if (save_block_ == nullptr || block.save == save_) return;
  if (block.has_value()) save_block_(block);
  block.save = save_;
}

void TensorBlocks::BeginSave(SaveNumber number, SaveBlock save_block) {
  save_ = number;
  save_block_ = std::move(save_block);
  scanned_ = 0;
}

bool TensorBlocks::SaveSome(const std::function<bool()>& is_enough) {
  while (scanned_ < blocks_.size()) {
    SaveBefore(blocks_[scanned_++]);
    if (is_enough()) return true;
  }
  return false;
}

size_t TensorBlocks::BytesToSave() const {
  size_t sum = 0;
  for (size_t i = scanned_; i < blocks_.size(); ++i) {
    if (blocks_[i].save != save_) sum += blocks_[i].memory.size();
  }
  return sum;
}

void TensorBlocks::Renumber() {
  for (Block& block : blocks_) block.save = save_;
}

Status TensorBlocks::Restore(size_t number, std::span<const std::byte> content) {
  const size_t slots = optimizer_ == nullptr ? 0 : optimizer_->slots();
  for (Block& block : blocks_) {
    if (block.number != number) continue;
    if (content.size() != block.values * (1 + slots) * sizeof(float)) break;
    block.memory = wire::Buffer(content.size());
    std::memcpy(block.memory.data(), content.data(), content.size());
    block.save = save_;
    return Ok();
  }
  return InvalidArgument("tensor '{}' has no block {} of {} bytes in this lane", spec_.name, number,
                         content.size());
}

size_t TensorBlocks::bytes() const {
  size_t sum = 0;
  for (const Block& block : blocks_) sum += block.memory.size();
  return sum;
}

}  // namespace edl::ps
