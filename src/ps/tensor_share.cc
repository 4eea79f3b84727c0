#include "ps/tensor_share.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace edl::ps {
namespace {

std::unique_ptr<Optimizer> OptimizerOf(const TensorSpec& spec) {
  return spec.optimizer.has_value() ? std::move(*MakeOptimizer(*spec.optimizer)) : nullptr;
}

}  // namespace

TensorShare::TensorShare(TensorSpec spec, wire::Bucket first, size_t end)
    : spec_(std::move(spec)), optimizer_(OptimizerOf(spec_)) {
  const size_t slots = optimizer_ == nullptr ? 0 : optimizer_->slots();
  for (size_t number = 0; number < wire::BlocksOf(spec_.size); ++number) {
    const wire::Bucket bucket = wire::BucketOfBlock(spec_.name, number);
    if (bucket < first || bucket >= end) continue;
    const size_t values = wire::ValuesOfBlock(spec_.size, number);
    blocks_.push_back({.number = number,
                       .bucket = bucket,
                       .values = values,
                       .memory = wire::Buffer(values * (1 + slots) * sizeof(float))});
    values_ += values;
  }
}

size_t TensorShare::Put(const float* values) {
  size_t taken = 0;
  for (Block& block : blocks_) {
    if (!block.has_value) {
      std::memcpy(block.weights(), values, block.values * sizeof(float));
      if (optimizer_ != nullptr) {
        optimizer_->InitSlots({block.weights() + block.values, block.values * optimizer_->slots()});
      }
      block.has_value = true;
      ++taken;
    }
    values += block.values;
  }
  return taken;
}

bool TensorShare::has_value() const {
  return std::ranges::all_of(blocks_, [](const Block& block) { return block.has_value; });
}

void TensorShare::Pull(float* out) const {
  for (const Block& block : blocks_) {
    std::memcpy(out, block.weights(), block.values * sizeof(float));
    out += block.values;
  }
}

void TensorShare::Change(Block& block, const float* gradient, const Step& step) {
  float* const weights = block.weights();
  if (optimizer_ != nullptr) {
    optimizer_->Apply({&weights, 1}, block.values, gradient, step);
    return;
  }
  for (size_t i = 0; i < block.values; ++i) weights[i] += gradient[i];
}

size_t TensorShare::bytes() const {
  size_t sum = 0;
  for (const Block& block : blocks_) sum += block.memory.size();
  return sum;
}

}  // namespace edl::ps
