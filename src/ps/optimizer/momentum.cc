#include <algorithm>

#include "ps/optimizer/optimizer.h"
#include "ps/optimizer/vectorized.h"

namespace edl::ps {
namespace {

struct Factors {
  float rate;
  float decay;
  float momentum;
};

EDL_VECTORIZED void Update(float* __restrict weights, float* __restrict moved,
                           const float* __restrict gradient, size_t size, Factors factors) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * factors.decay;
    moved[i] = factors.momentum * moved[i] - factors.rate * gradient[i];
    weights[i] += moved[i];
  }
}

// Nesterov momentum, as if the gradient had been computed after the next movement.
EDL_VECTORIZED void UpdateNesterov(float* __restrict weights, float* __restrict moved,
                                   const float* __restrict gradient, size_t size, Factors factors) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * factors.decay;
    moved[i] = factors.momentum * moved[i] - factors.rate * gradient[i];
    weights[i] += factors.momentum * moved[i] - factors.rate * gradient[i];
  }
}

// The slot is the velocity, which includes the learning rate, as in Keras.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(const OptimizerOptions& options)
      : momentum_(options.momentum),
        nesterov_(options.nesterov),
        weight_decay_(options.weight_decay) {}

  std::string_view name() const override { return "Momentum"; }
  size_t slots() const override { return 1; }
  void InitSlots(std::span<float> slots) const override {
    std::fill(slots.begin(), slots.end(), 0.0F);
  }
  void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
             const Step& step) const override {
    const Factors factors{step.learning_rate, weight_decay_ * step.learning_rate, momentum_};
    const auto update = nesterov_ ? UpdateNesterov : Update;
    for (float* const weights : blocks) {
      update(weights, weights + size, gradients, size, factors);
      gradients += size;
    }
  }

 private:
  const float momentum_;
  const bool nesterov_;
  const float weight_decay_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeMomentum(const OptimizerOptions& options) {
  return std::make_unique<Momentum>(options);
}

}  // namespace edl::ps
