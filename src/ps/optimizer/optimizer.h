#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::ps {

// What a push says besides its gradients.
struct Step {
  float learning_rate = 0;
  int64_t number = 1;  // from 1: how many pushes have changed the bucket, this one among them
};

// A rule by which gradients change weights, as tf.keras.optimizers of TensorFlow 2.15 has it. It
// works on blocks: `size` weights with their slots after them, slot by slot. A row of a table is
// one, and so is a piece of a dense tensor. For a table that is the lazy form: rows that a push
// does not name stay as they are, their slots too. Immutable.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual std::string_view name() const = 0;
  // How many values stand beside each weight.
  virtual size_t slots() const = 0;
  // Whether it asks for a step's number.
  virtual bool counts_steps() const { return false; }
  // Writes the slots of weights that no gradient has changed yet.
  // REQUIRES: `slots` holds slots() values a weight.
  virtual void InitSlots(std::span<float> slots) const = 0;
  // Changes each block by its gradient; the gradients are one after the other.
  // REQUIRES: no block is there twice.
  virtual void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
                     const Step& step) const = 0;
};

// All settings of all rules; each takes its own. The defaults are those of Keras.
struct OptimizerOptions {
  std::string name = "SGD";  // or Momentum, Adagrad, Adam, AdamW, RMSprop, Ftrl
  float momentum = 0;        // SGD with it is Momentum; also of RMSprop
  bool nesterov = false;
  float initial_accumulator_value = 0.1F;  // Adagrad, Ftrl
  float epsilon = 1e-7F;
  // In double, as what is left to 1 is taken first.
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  bool amsgrad = false;
  double rho = 0.9;  // RMSprop
  bool centered = false;
  float learning_rate_power = -0.5F;  // Ftrl, as the four below
  float l1_regularization_strength = 0;
  float l2_regularization_strength = 0;
  float l2_shrinkage_regularization_strength = 0;
  float beta = 0;
  // The share of themselves that weights lose in a step, times the learning rate.
  float weight_decay = 0;

  bool operator==(const OptimizerOptions&) const = default;
};

// InvalidArgument names the setting and what it may be.
Result<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options);

// The rules, a file each. REQUIRES: the options were checked by MakeOptimizer.
std::unique_ptr<Optimizer> MakeSgd(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeMomentum(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeAdagrad(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeAdam(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeRmsprop(const OptimizerOptions& options);
std::unique_ptr<Optimizer> MakeFtrl(const OptimizerOptions& options);

}  // namespace edl::ps
