#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::ps {

// The parameters of one optimizer step.
struct Step {
  float learning_rate = 0;
  int64_t number = 1;  // the steps of the bucket so far, including this one
};

// An optimizer with the update rule of tf.keras.optimizers in TensorFlow 2.15. It works on blocks:
// a block is a row of a table, or a block of a dense tensor, and consists of its weights followed
// by all values of the first slot, then of the second. Tables are updated lazily: a step changes
// only the weights and slots of the rows that were pushed. Immutable.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual std::string_view name() const = 0;
  // The number of slots: values that the optimizer keeps for each weight.
  virtual size_t slots() const = 0;
  // Whether the update depends on Step::number.
  virtual bool counts_steps() const { return false; }
  // Writes the initial values of the slots of a block.
  // REQUIRES: `slots` has slots() values for each weight of the block.
  virtual void InitSlots(std::span<float> slots) const = 0;
  // Applies one gradient to each block. Blocks have `size` weights; `gradients` holds `size` values
  // for each block. REQUIRES: the blocks are distinct.
  virtual void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
                     const Step& step) const = 0;
};

// The settings of all optimizers. Each optimizer reads only its own. The defaults are those of
// Keras.
struct OptimizerOptions {
  std::string name = "SGD";  // or Momentum, Adagrad, Adam, AdamW, RMSprop, Ftrl
  float momentum = 0;        // Momentum, RMSprop; SGD with momentum > 0 becomes Momentum
  bool nesterov = false;
  float initial_accumulator_value = 0.1F;  // Adagrad, Ftrl
  float epsilon = 1e-7F;
  // double, so that 1 - beta is precise.
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  bool amsgrad = false;
  double rho = 0.9;  // RMSprop
  bool centered = false;
  float learning_rate_power = -0.5F;  // Ftrl, like the next four
  float l1_regularization_strength = 0;
  float l2_regularization_strength = 0;
  float l2_shrinkage_regularization_strength = 0;
  float beta = 0;
  // Each step multiplies weights by 1 - learning_rate * weight_decay first.
  float weight_decay = 0;

  bool operator==(const OptimizerOptions&) const = default;
};

// InvalidArgument: a setting is invalid; the message names it and its valid range.
Result<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options);

// The optimizers, one file each. Called by MakeOptimizer, which checks the options.
std::unique_ptr<Optimizer> MakeSgd(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeMomentum(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeAdagrad(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeAdam(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeRmsprop(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeFtrl(const OptimizerOptions& options);

}  // namespace edl::ps
