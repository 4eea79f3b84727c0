#include "ps/optimizer/optimizer.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::ps {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;

// The weight after each of these gradients, from 1, with learning rate 0.1. (That the rules are
// those of Keras is for a test with Keras to tell; these are numbers worked out by hand.)
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

TEST(Optimizer, AmsgradRemembersTheLargest) {
  // A large gradient, then small ones: Adam forgets it and speeds up again.
  const std::vector<float> gradients = {10, 0.1F, 0.1F, 0.1F};
  const float adam = WeightsAfter({.name = "Adam", .beta_1 = 0, .beta_2 = 0.5}, gradients).back();
  const float most =
      WeightsAfter({.name = "Adam", .beta_1 = 0, .beta_2 = 0.5, .amsgrad = true}, gradients).back();
  EXPECT_LT(adam, most);
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
    constexpr size_t kSize = 1000;  // no multiple of what a processor takes at once
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

TEST(Optimizer, SaysWhichSettingIsWrong) {
  const std::vector<std::pair<OptimizerOptions, std::string>> cases = {
      {{.name = "Adamax"}, "there is no optimizer 'Adamax'; there are SGD, Momentum"},
      {{.name = "SGD", .momentum = 1}, "optimizer SGD: momentum=1 must be at least 0 and below 1"},
      {{.name = "Adam", .beta_1 = NAN}, "beta_1=nan"},
      {{.name = "Adagrad", .initial_accumulator_value = -1}, "must be at least 0"},
      {{.name = "Ftrl", .initial_accumulator_value = 0}, "must be above 0 for Ftrl"},
      {{.name = "Ftrl", .learning_rate_power = 1}, "must be at most 0"},
  };
  for (const auto& [options, message] : cases) {
    const auto made = MakeOptimizer(options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(made.status().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace edl::ps
