#include <algorithm>
#include <cmath>

#include "ps/optimizer/optimizer.h"

namespace edl::ps {
namespace {

// Follow the regularized leader (McMahan et al., 2013). Slots: the sum of squared gradients, and
// the linear term, from which each step computes the weight.
class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(const OptimizerOptions& options) : options_(options) {}

  std::string_view name() const override { return "Ftrl"; }
  size_t slots() const override { return 2; }
  void InitSlots(std::span<float> slots) const override {
    const size_t size = slots.size() / 2;
    std::fill(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(size),
              options_.initial_accumulator_value);
    std::fill(slots.begin() + static_cast<ptrdiff_t>(size), slots.end(), 0.0F);
  }
  void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
             const Step& step) const override {
    const float rate = step.learning_rate;
    const float l1 = options_.l1_regularization_strength;
    const float l2 = options_.l2_regularization_strength + options_.beta / (2 * rate);
    const float shrinkage = 2 * options_.l2_shrinkage_regularization_strength;
    const float decay = options_.weight_decay * rate;
    for (float* const weights : blocks) {
      for (size_t i = 0; i < size; ++i) {
        float& sum = weights[size + i];
        float& linear = weights[2 * size + i];
        weights[i] -= weights[i] * decay;
        const float raised = sum + gradients[i] * gradients[i];
        const float power = Power(raised);
        linear += gradients[i] + shrinkage * weights[i] - (power - Power(sum)) / rate * weights[i];
        weights[i] = (std::clamp(linear, -l1, l1) - linear) / (power / rate + 2 * l2);
        sum = raised;
      }
      gradients += size;
    }
  }

 private:
  float Power(float sum) const {
    return options_.learning_rate_power == -0.5F ? std::sqrt(sum)
                                                 : std::pow(sum, -options_.learning_rate_power);
  }

  const OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeFtrl(const OptimizerOptions& options) {
  return std::make_unique<Ftrl>(options);
}

}  // namespace edl::ps
