#include "ps/optimizer/optimizer.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;

// The weight after each gradient. It starts at 1, and the learning rate is 0.1. The expected
// numbers are worked out by hand; tests/e2e/test_optimizers.py compares the rules with Keras.
std::vector<float> WeightsAfter(const OptimizerOptions& options,
                                const std::vector<float>& gradients) {
  const auto optimizer = std::move(*MakeOptimizer(options));
  std::vector<float> block(1 + optimizer->slots());
  block[0] = 1;
  optimizer->InitSlots(std::span(block).subspan(1));
  std::vector<float> out;
  for (const float gradient : gradients) {
    float* const at = block.data();
    optimizer->Apply({&at, 1}, 1, &gradient,
                     {.learning_rate = 0.1F, .number = static_cast<int64_t>(out.size()) + 1});
    out.push_back(block[0]);
  }
  return out;
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_THAT(got[i], FloatNear(static_cast<float>(wanted[i]), 1e-6F)) << "step " << i + 1;
  }
}

TEST(Optimizer, SgdSubtracts) {
  ExpectNear(WeightsAfter({.name = "SGD"}, {1, -2}), {0.9, 1.1});
  ExpectNear(WeightsAfter({.name = "SGD", .weight_decay = 0.5F}, {1}), {1 - 0.05 - 0.1});
}

TEST(Optimizer, MomentumKeepsMoving) {
  // -0.1, then 0.5 * -0.1 - 0.1.
  ExpectNear(WeightsAfter({.name = "SGD", .momentum = 0.5F}, {1, 1}), {0.9, 0.75});
  ExpectNear(WeightsAfter({.name = "Momentum", .momentum = 0.5F, .nesterov = true}, {1, 1}),
             {1 - 0.15, 1 - 0.15 - 0.175});
}

TEST(Optimizer, AdagradDividesByTheRootOfTheSum) {
  ExpectNear(WeightsAfter({.name = "Adagrad"}, {1, 1}),
             {1 - 0.1 / std::sqrt(1.1), 1 - 0.1 / std::sqrt(1.1) - 0.1 / std::sqrt(2.1)});
}

TEST(Optimizer, AdamsFirstStepIsTheLearningRate) {
  ExpectNear(WeightsAfter({.name = "Adam"}, {5}), {0.9});
  ExpectNear(WeightsAfter({.name = "Adam", .amsgrad = true}, {-5}), {1.1});
  ExpectNear(WeightsAfter({.name = "AdamW", .weight_decay = 0.5F}, {5}), {0.95 - 0.1});
}

TEST(Optimizer, AmsgradDividesByTheLargestSecondMoment) {
  // With beta_1 = 0 the first moment is the gradient, and with beta_2 = 0.5 the bias correction of
  // step t is sqrt(1 - 2^-t). The second moment is 0.5 * 10^2 = 50 after the large gradient, then
  // 0.5 * 50 + 0.5 * 0.1^2 = 25.005 and 12.5075. AMSGrad keeps dividing by sqrt(50).
  const std::vector<float> gradients = {10, 0.1F, 0.1F};
  const double first = 1 - 0.1 * 10 * std::sqrt(0.5) / std::sqrt(50);
  const auto step = [](double correction, double moment) {
    return 0.1 * 0.1 * std::sqrt(correction) / std::sqrt(moment);
  };
  ExpectNear(WeightsAfter({.name = "Adam", .beta_1 = 0, .beta_2 = 0.5, .amsgrad = true}, gradients),
             {first, first - step(0.75, 50), first - step(0.75, 50) - step(0.875, 50)});
  ExpectNear(
      WeightsAfter({.name = "Adam", .beta_1 = 0, .beta_2 = 0.5}, gradients),
      {first, first - step(0.75, 25.005), first - step(0.75, 25.005) - step(0.875, 12.5075)});
}

TEST(Optimizer, RmspropDividesByTheRootOfTheMean) {
  ExpectNear(WeightsAfter({.name = "RMSprop"}, {1}), {1 - 0.1 / std::sqrt(0.1)});
  ExpectNear(WeightsAfter({.name = "RMSprop", .centered = true}, {1}),
             {1 - 0.1 / std::sqrt(0.1 - 0.01)});
  const double by = 0.1 / std::sqrt(0.1);
  const double then = 0.1 / std::sqrt(0.19);
  ExpectNear(WeightsAfter({.name = "RMSprop", .momentum = 0.5F}, {1, 1}),
             {1 - by, 1 - by - (0.5 * by + then)});
}

// With accumulator n, learning rate r and linear term z:
//   z += g - (sqrt(n + g^2) - sqrt(n)) / r * w,  w = (clamp(z, -l1, l1) - z) / (sqrt(n) / r + 2
//   l2).
// Here n starts at 0.1, z at 0 and w at 1. The first gradient is 1, so n = 1.1 and
//   z = 1 - 10 (sqrt(1.1) - sqrt(0.1)).
TEST(Optimizer, FtrlSolvesForTheWeight) {
  const double z = 1 - 10 * (std::sqrt(1.1) - std::sqrt(0.1));
  const double first = -z / (10 * std::sqrt(1.1));
  // Without regularization, a later step is one of Adagrad: w -= 0.1 g / sqrt(n).
  ExpectNear(WeightsAfter({.name = "Ftrl"}, {1, -2}), {first, first + 0.2 / std::sqrt(5.1)});
  ExpectNear(WeightsAfter({.name = "Ftrl", .l1_regularization_strength = 0.5F}, {1}),
             {(-0.5 - z) / (10 * std::sqrt(1.1))});
  ExpectNear(WeightsAfter({.name = "Ftrl", .l2_regularization_strength = 1}, {1}),
             {-z / (10 * std::sqrt(1.1) + 2)});
  // Shrinkage adds 2 * 0.5 * w to the gradient in z.
  ExpectNear(WeightsAfter({.name = "Ftrl", .l2_shrinkage_regularization_strength = 0.5F}, {1}),
             {-(z + 1) / (10 * std::sqrt(1.1))});
  // beta adds beta / (2 r) = 5 to l2.
  ExpectNear(WeightsAfter({.name = "Ftrl", .beta = 1}, {1}), {-z / (10 * std::sqrt(1.1) + 10)});
  // With power -1: sqrt(n) becomes n, so z = 1 - 10 (1.1 - 0.1) and w = 9 / 11.
  ExpectNear(WeightsAfter({.name = "Ftrl", .learning_rate_power = -1}, {1}), {9.0 / 11});
}

TEST(Optimizer, FtrlKeepsSmallWeightsAtZero) {
  const std::vector<float> sparse =
      WeightsAfter({.name = "Ftrl", .l1_regularization_strength = 100}, {0.01F, -0.01F});
  EXPECT_EQ(sparse.back(), 0);
  EXPECT_NE(WeightsAfter({.name = "Ftrl"}, {0.01F}).back(), 0);
}

TEST(Optimizer, WorksOnBlocksOfAnySize) {
  for (const std::string name : {"SGD", "Momentum", "Adagrad", "Adam", "RMSprop", "Ftrl"}) {
    const auto optimizer =
        std::move(*MakeOptimizer({.name = name, .momentum = name == "Adam" ? 0 : 0.5F}));
    constexpr size_t kSize = 1000;  // not a multiple of the vector length of any processor
    const auto apply = [&](size_t size) {
      std::vector<float> blocks(kSize * (1 + optimizer->slots()));
      std::vector<float> gradients(kSize);
      for (size_t i = 0; i < kSize; ++i) gradients[i] = std::sin(static_cast<float>(i));
      std::vector<float> weights;
      for (size_t at = 0; at < kSize; at += size) {
        float* const block = blocks.data();
        std::fill_n(block, size, 0.5F);
        optimizer->InitSlots({block + size, size * optimizer->slots()});
        optimizer->Apply({&block, 1}, size, &gradients[at], {.learning_rate = 0.1F});
        weights.insert(weights.end(), block, block + size);
      }
      return weights;
    };
    EXPECT_EQ(apply(kSize), apply(8)) << name;
    EXPECT_EQ(apply(kSize), apply(1)) << name;
  }
}

TEST(Optimizer, NamesTheInvalidSetting) {
  const std::vector<std::pair<OptimizerOptions, std::string>> cases = {
      {{.name = "Adamax"}, "unknown optimizer 'Adamax': use one of SGD, Momentum"},
      {{.name = "SGD", .momentum = 1}, "optimizer SGD: momentum=1 must be at least 0 and below 1"},
      {{.name = "Adam", .beta_1 = NAN}, "beta_1=nan"},
      {{.name = "Adagrad", .initial_accumulator_value = -1}, "must be at least 0"},
      {{.name = "Ftrl", .initial_accumulator_value = 0}, "must be above 0 for Ftrl"},
      {{.name = "Ftrl", .learning_rate_power = 1}, "must be at most 0"},
  };
  for (const auto& [options, message] : cases) {
    EXPECT_THAT(MakeOptimizer(options), StatusIs(Code::kInvalidArgument, HasSubstr(message)));
  }
}

}  // namespace
}  // namespace edl::ps
