#include <algorithm>
#include <array>
#include <cmath>

#include "ps/optimizer/optimizer.h"
#include "ps/optimizer/vectorized.h"

namespace edl::ps {
namespace {

struct Factors {
  float rate;
  float decay;
  float rho;
  float keep;  // 1 - rho
  float epsilon;
  float momentum;
};

// Writes the square of the divisor of each gradient: the mean of squared gradients, minus the
// squared mean if `means` is not null (centered).
EDL_VECTORIZED void Measure(float* __restrict squares, float* __restrict means,
                            const float* __restrict gradient, float* __restrict out, size_t size,
                            Factors factors) {
  for (size_t i = 0; i < size; ++i) {
    squares[i] = factors.rho * squares[i] + factors.keep * (gradient[i] * gradient[i]);
    out[i] = squares[i] + factors.epsilon;
  }
  if (means == nullptr) return;
  for (size_t i = 0; i < size; ++i) {
    means[i] = factors.rho * means[i] + factors.keep * gradient[i];
    out[i] = squares[i] - means[i] * means[i] + factors.epsilon;
  }
}

EDL_VECTORIZED void Move(float* __restrict weights, float* __restrict moved,
                         const float* __restrict gradient, const float* __restrict divisors,
                         size_t size, Factors factors) {
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= weights[i] * factors.decay;
    const float by = factors.rate * gradient[i] / std::sqrt(divisors[i]);
    if (moved == nullptr) {
      weights[i] -= by;
    } else {
      moved[i] = factors.momentum * moved[i] + by;
      weights[i] -= moved[i];
    }
  }
}

// Slots: the mean of squared gradients; if centered, the mean of gradients; with momentum, the
// velocity.
class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(const OptimizerOptions& options) : options_(options) {}

  std::string_view name() const override { return "RMSprop"; }
  size_t slots() const override {
    return 1 + (options_.centered ? 1 : 0) + (options_.momentum > 0 ? 1 : 0);
  }
  void InitSlots(std::span<float> slots) const override {
    std::fill(slots.begin(), slots.end(), 0.0F);
  }
  void Apply(std::span<float* const> blocks, size_t size, const float* gradients,
             const Step& step) const override {
    const Factors factors{step.learning_rate,
                          options_.weight_decay * step.learning_rate,
                          static_cast<float>(options_.rho),
                          static_cast<float>(1 - options_.rho),
                          options_.epsilon,
                          options_.momentum};
    for (float* const weights : blocks) {
      Change(weights, size, gradients, factors);
      gradients += size;
    }
  }

 private:
  // Works in pieces, so that the divisors stay in the cache of the processor.
  void Change(float* weights, size_t size, const float* gradient, const Factors& factors) const {
    constexpr size_t kPiece = 256;
    std::array<float, kPiece> divisors;  // NOLINT: written before it is read
    for (size_t at = 0; at < size; at += kPiece) {
      const size_t count = std::min(kPiece, size - at);
      float* const squares = weights + size + at;
      float* const means = options_.centered ? squares + size : nullptr;
      float* const moved =
          options_.momentum > 0 ? squares + (options_.centered ? 2 : 1) * size : nullptr;
      Measure(squares, means, gradient + at, divisors.data(), count, factors);
      Move(weights + at, moved, gradient + at, divisors.data(), count, factors);
    }
  }

  const OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeRmsprop(const OptimizerOptions& options) {
  return std::make_unique<Rmsprop>(options);
}

}  // namespace edl::ps
