#include <algorithm>
#include <cmath>

#include "ps/optimizer/optimizer.h"
#include "ps/optimizer/vectorized.h"

namespace edl::ps {
namespace {

struct Factors {
  float rate;  // the learning rate with the bias correction of the moments
  float decay;
  float keep_1;  // 1 - beta_1
  float keep_2;  // 1 - beta_2
  float epsilon;
};

EDL_VECTORIZED void Update(float* __restrict weights, float* __restrict first,
                           float* __restrict second, const float* __restrict gradient, size_t size,
                           Factors factors) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * factors.decay;
    first[i] += (gradient[i] - first[i]) * factors.keep_1;
    second[i] += (gradient[i] * gradient[i] - second[i]) * factors.keep_2;
    weights[i] -= first[i] * factors.rate / (std::sqrt(second[i]) + factors.epsilon);
  }
}

// AMSGrad: divides by the largest second moment so far.
EDL_VECTORIZED void UpdateMost(float* __restrict weights, float* __restrict first,
                               float* __restrict second, float* __restrict most,
                               const float* __restrict gradient, size_t size, Factors factors) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * factors.decay;
    first[i] += (gradient[i] - first[i]) * factors.keep_1;
    second[i] += (gradient[i] * gradient[i] - second[i]) * factors.keep_2;
    most[i] = most[i] > second[i] ? most[i] : second[i];
    weights[i] -= first[i] * factors.rate / (std::sqrt(most[i]) + factors.epsilon);
  }
}

// Adam, AMSGrad, and AdamW, which is Adam with weight decay. Slots: the first moment, the second
// moment, and for AMSGrad the largest second moment.
class Adam final : public Optimizer {
 public:
  explicit Adam(const OptimizerOptions& options) : options_(options) {}

  std::string_view name() const override { return options_.name; }
  size_t slots() const override { return options_.amsgrad ? 3 : 2; }
  bool counts_steps() const override { return true; }
  void InitSlots(std::span<float> slots) const override {
    std::fill(slots.begin(), slots.end(), 0.0F);
  }
  void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
             const Step& step) const override {
    const auto number = static_cast<double>(step.number);
    const double correction =
        std::sqrt(1 - std::pow(options_.beta_2, number)) / (1 - std::pow(options_.beta_1, number));
    const Factors factors{.rate = static_cast<float>(step.learning_rate * correction),
                          .decay = options_.weight_decay * step.learning_rate,
                          .keep_1 = static_cast<float>(1 - options_.beta_1),
                          .keep_2 = static_cast<float>(1 - options_.beta_2),
                          .epsilon = options_.epsilon};
    for (float* const weights : blocks) {
      float* const first = weights + size;
      float* const second = first + size;
      if (options_.amsgrad) {
        UpdateMost(weights, first, second, second + size, gradients, size, factors);
      } else {
        Update(weights, first, second, gradients, size, factors);
      }
      gradients += size;
    }
  }

 private:
  const OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdam(const OptimizerOptions& options) {
  return std::make_unique<Adam>(options);
}

}  // namespace edl::ps
