#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "ps/declaration.h"
#include "ps/optimizer/optimizer.h"
#include "ps/record_collector.h"
#include "wire/frame.h"
#include "wire/placement.h"

namespace edl::ps {

// The blocks of a dense tensor that belong to one lane, each with its optimizer slots. A block has
// no value, and takes no memory, until the first Put. Confined to the lane's thread.
class TensorBlocks {
 public:
  // For the buckets first..end-1. REQUIRES: MakeOptimizer accepts the optimizer of the spec.
  // `save` is the number of the lane's last save.
  TensorBlocks(TensorSpec spec, wire::Bucket first, size_t end, SaveNumber save = 0);

  struct Block {
    size_t number = 0;  // within the tensor
    wire::Bucket bucket = 0;
    size_t values = 0;
    wire::Buffer memory;  // the weights, then the slots; empty: the block has no value
    SaveNumber save = 0;

    bool has_value() const { return memory.size() > 0; }
    float* weights() const { return reinterpret_cast<float*>(memory.data()); }
  };

  // Sets the blocks that have no value; the others keep theirs. `values` holds the values of all
  // blocks, one block after the other. Returns how many blocks were set.
  // REQUIRES: values() values.
  size_t Put(const float* values);
  // Whether all blocks have a value.
  bool has_value() const;
  // Writes the weights of all blocks, one block after the other. REQUIRES: has_value().
  void Pull(float* out) const;
  // Applies gradients to the blocks for which `step_of(bucket)` returns a step. `gradients` holds
  // the gradients of all blocks. REQUIRES: has_value().
  template <typename StepOf>
  void Push(const float* gradients, const StepOf& step_of) {
    for (Block& block : blocks_) {
      if (const std::optional<Step> step = step_of(block.bucket)) Change(block, gradients, *step);
      gradients += block.values;
    }
  }

  // --- saving: the same contract as Table has, with blocks instead of rows ---
  // Called once with each block, before the block changes.
  using SaveBlock = std::function<void(const Block&)>;
  void BeginSave(SaveNumber number, SaveBlock save_block);
  bool SaveSome(const std::function<bool()>& is_enough);
  // Bytes of the blocks that are not saved yet.
  size_t BytesToSave() const;
  void EndSave() { save_block_ = nullptr; }
  void Renumber();
  // InvalidArgument: this lane has no such block, or its size differs.
  Status Restore(size_t number, std::span<const std::byte> content);

  const TensorSpec& spec() const { return spec_; }
  const Optimizer* optimizer() const { return optimizer_.get(); }  // null: changes are added
  // The number of values in this lane's blocks.
  size_t values() const { return values_; }
  size_t bytes() const;
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  void SaveBefore(Block& block);
  void Change(Block& block, const float* gradient, const Step& step);

  const TensorSpec spec_;
  const std::unique_ptr<Optimizer> optimizer_;  // null: changes are added
  std::vector<Block> blocks_;
  size_t values_ = 0;
  SaveNumber save_;
  SaveBlock save_block_;
  size_t scanned_ = 0;
};

}  // namespace edl::ps
