#include <algorithm>
#include <cmath>

#include "ps/optimizer/optimizer.h"
#include "ps/optimizer/vectorized.h"

namespace edl::ps {
namespace {

EDL_VECTORIZED void Update(float* __restrict weights, float* __restrict sums,
                           const float* __restrict gradient, size_t size, float rate, float decay,
                           float epsilon) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * decay;
    sums[i] += gradient[i] * gradient[i];
    weights[i] -= rate * gradient[i] / std::sqrt(sums[i] + epsilon);
  }
}

// The slot is the sum of squared gradients.
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerOptions& options)
      : initial_(options.initial_accumulator_value),
        epsilon_(options.epsilon),
        weight_decay_(options.weight_decay) {}

  std::string_view name() const override { return "Adagrad"; }
  size_t slots() const override { return 1; }
  void InitSlots(std::span<float> slots) const override {
    std::fill(slots.begin(), slots.end(), initial_);
  }
  void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
             const Step& step) const override {
    const float decay = weight_decay_ * step.learning_rate;
    for (float* const weights : blocks) {
      Update(weights, weights + size, gradients, size, step.learning_rate, decay, epsilon_);
      gradients += size;
    }
  }

 private:
  const float initial_;
  const float epsilon_;
  const float weight_decay_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdagrad(const OptimizerOptions& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace edl::ps
