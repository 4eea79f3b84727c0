#include "ps/initializer.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/random.h"

namespace edl::ps {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

struct Moments {
  double mean = 0;
  double stddev = 0;
  float least = 0;
  float most = 0;
};

// Of 200,000 values in rows of 10.
Moments Draw(const Initializer& initializer) {
  std::vector<float> row(10);
  Moments moments{.least = INFINITY, .most = -INFINITY};
  double sum = 0;
  double squares = 0;
  constexpr int kRows = 20'000;
  for (int id = 0; id < kRows; ++id) {
    initializer.Fill(42, id, row);
    for (const float value : row) {
      sum += value;
      squares += double{value} * value;
      moments.least = std::min(moments.least, value);
      moments.most = std::max(moments.most, value);
    }
  }
  const double count = kRows * 10.0;
  moments.mean = sum / count;
  moments.stddev = std::sqrt(squares / count - moments.mean * moments.mean);
  return moments;
}

TEST(Philox, GivesThePublishedWords) {
  // The known answers of the Random123 library.
  EXPECT_THAT(Philox(0, 0, 0), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Initializer, IsAFunctionOfSeedAndIdAlone) {
  for (const Initializer& initializer : {Initializer::Uniform(-1, 1), Initializer::Normal(0, 1),
                                         Initializer::TruncatedNormal(0, 1)}) {
    std::vector<float> once(7);
    std::vector<float> again(7);
    std::vector<float> other(7);
    initializer.Fill(1, -5, once);
    initializer.Fill(1, 6, other);
    initializer.Fill(1, -5, again);
    EXPECT_EQ(once, again);
    EXPECT_NE(once, other);
    initializer.Fill(2, -5, other);
    EXPECT_NE(once, other);
  }
}

TEST(Initializer, ConstantIsOneValue) {
  std::vector<float> row(3);
  Initializer::Constant(0.5F).Fill(1, 2, row);
  EXPECT_THAT(row, Each(0.5F));
}

TEST(Initializer, UniformFillsItsRange) {
  const Moments drawn = Draw(Initializer::Uniform(-0.05F, 0.05F));
  EXPECT_NEAR(drawn.mean, 0, 3e-4);
  EXPECT_NEAR(drawn.stddev, 0.1 / std::sqrt(12), 2e-4);
  EXPECT_GE(drawn.least, -0.05F);
  EXPECT_LT(drawn.most, 0.05F);
}

TEST(Initializer, NormalHasItsMoments) {
  const Moments drawn = Draw(Initializer::Normal(1, 0.5F));
  EXPECT_NEAR(drawn.mean, 1, 5e-3);
  EXPECT_NEAR(drawn.stddev, 0.5, 5e-3);
  EXPECT_GT(drawn.most, 1 + 4 * 0.5) << "no tail";
}

TEST(Initializer, TruncatedNormalEndsAtTwoDeviations) {
  const Moments drawn = Draw(Initializer::TruncatedNormal(0, 1));
  EXPECT_NEAR(drawn.mean, 0, 1e-2);
  EXPECT_NEAR(drawn.stddev, 0.8796, 1e-2);
  EXPECT_GE(drawn.least, -2);
  EXPECT_LE(drawn.most, 2);
  EXPECT_GT(drawn.most, 1.99F);
}

TEST(Initializer, GlorotHasTheWidthOfItsSizes) {
  const Moments uniform = Draw(Initializer::GlorotUniform(100, 50));
  EXPECT_NEAR(uniform.most, 0.2, 1e-3);
  const Moments normal = Draw(Initializer::GlorotNormal(100, 50));
  EXPECT_NEAR(normal.stddev, std::sqrt(2.0 / 150), 2e-3);
}

TEST(SeedOf, DependsOnJobAndTable) {
  EXPECT_EQ(SeedOf(1, "user"), SeedOf(1, "user"));
  EXPECT_NE(SeedOf(1, "user"), SeedOf(2, "user"));
  EXPECT_NE(SeedOf(1, "user"), SeedOf(1, "item"));
}

TEST(Initializer, FillsManyRowsAsItFillsEach) {
  for (const Initializer initializer :
       {Initializer::Uniform(-0.5F, 2), Initializer::Normal(0, 1), Initializer::Constant(3)}) {
    for (const size_t dim : {1, 3, 4, 8, 16, 20, 64}) {
      for (const size_t count : {0, 1, 2, 5, 64}) {
        std::vector<int64_t> ids;
        std::vector<std::vector<float>> together(count, std::vector<float>(dim));
        std::vector<float*> rows;
        for (size_t i = 0; i < count; ++i) {
          ids.push_back(static_cast<int64_t>(i) * -7'000'000'000);
          rows.push_back(together[i].data());
        }
        initializer.FillAll(9, ids, rows, dim);
        for (size_t i = 0; i < count; ++i) {
          std::vector<float> alone(dim);
          initializer.Fill(9, ids[i], alone);
          EXPECT_EQ(together[i], alone) << dim << " values, row " << i << " of " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace edl::ps
