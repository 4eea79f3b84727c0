#include "ps/optimizer/optimizer.h"
#include "ps/optimizer/vectorized.h"

namespace edl::ps {
namespace {

EDL_VECTORIZED void Update(float* __restrict weights, const float* __restrict gradient, size_t size,
                           float rate, float decay) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * decay;
    weights[i] -= rate * gradient[i];
  }
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : weight_decay_(options.weight_decay) {}

  std::string_view name() const override { return "SGD"; }
  size_t slots() const override { return 0; }
  void InitSlots(std::span<float> /*slots*/) const override {}
  void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
             const Step& step) const override {
    const float decay = weight_decay_ * step.learning_rate;
    for (float* const weights : blocks) {
      Update(weights, gradients, size, step.learning_rate, decay);
      gradients += size;
    }
  }

 private:
  const float weight_decay_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeSgd(const OptimizerOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace edl::ps
