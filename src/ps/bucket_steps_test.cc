#include "ps/bucket_steps.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "ps/table.h"
#include "ps/tensor_blocks.h"

namespace edl::ps {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr BucketRange kRange{.first = 10, .end = 14};

BucketSubset All() { return {kRange, std::nullopt}; }
// The buckets 10 and 12.
BucketSubset Half() { return {kRange, std::vector{true, false, true, false}}; }

TEST(BucketRange, ContainsItsFirstAndNotItsEnd) {
  EXPECT_FALSE(kRange.Contains(9));
  EXPECT_TRUE(kRange.Contains(10));
  EXPECT_TRUE(kRange.Contains(13));
  EXPECT_FALSE(kRange.Contains(14));
}

TEST(BucketRange, OverlapsARangeThatSharesABucket) {
  EXPECT_TRUE(kRange.Overlaps({.first = 0, .end = 11}));
  EXPECT_TRUE(kRange.Overlaps({.first = 13, .end = 20}));
  EXPECT_FALSE(kRange.Overlaps({.first = 0, .end = 10}));
  EXPECT_FALSE(kRange.Overlaps({.first = 14, .end = 20}));
}

TEST(BucketSteps, CountsTheStepsOfTheBucketsThatTakePart) {
  BucketSteps steps(kRange);
  steps.Begin(All());
  steps.Begin(Half());
  EXPECT_THAT(steps.counts(), ElementsAre(2, 1, 2, 1));
  EXPECT_EQ(steps.version(), 2U);
}

TEST(BucketSteps, StartsAtVersionZeroAfterARestore) {
  BucketSteps steps(kRange);
  steps.Begin(All());
  for (const wire::Bucket bucket : {10, 11, 12, 13}) steps.Restore(bucket, 7);
  steps.Settle();
  EXPECT_THAT(steps.counts(), Each(7U));
  EXPECT_EQ(steps.version(), 0U);
}

// Adam's first step moves a weight by the learning rate. With the bias correction of a later step
// number, the same gradient moves it by another distance.
TEST(BucketSteps, AppliesToEachRowWithTheStepNumberOfItsBucket) {
  constexpr BucketRange kAll{.first = 0, .end = wire::kBuckets};
  const std::vector<int64_t> ids = {1, 2};
  const std::vector<float> gradients = {-1, -1};
  const TableSpec spec{.name = "t", .dim = 1, .optimizer = {.name = "Adam"}};
  Table apart(spec);
  ASSERT_OK(apart.Reserve(2));
  const float step_1 = [&] {
    apart.Push(std::span(ids).first(1), gradients.data(), {.learning_rate = 1, .number = 1}, 1);
    float row = 0;
    apart.Pull(std::span(ids).first(1), Table::Unknown::kMake, &row);
    return row;
  }();
  const float step_6 = [&] {
    apart.Push(std::span(ids).last(1), gradients.data(), {.learning_rate = 1, .number = 6}, 1);
    float row = 0;
    apart.Pull(std::span(ids).last(1), Table::Unknown::kMake, &row);
    return row;
  }();
  ASSERT_NE(step_1, step_6);

  BucketSteps steps(kAll);
  steps.Restore(wire::BucketOf(2), 5);
  steps.Settle();
  Table table(spec);
  ASSERT_OK(table.Reserve(2));
  const BucketSubset all(kAll, std::nullopt);
  steps.Begin(all);
  steps.Apply(TableGradients{&table, ids, gradients.data(), 1}, all);

  std::vector<float> rows(2);
  table.Pull(ids, Table::Unknown::kMake, rows.data());
  EXPECT_THAT(rows, ElementsAre(step_1, step_6));
}

TEST(BucketSteps, ChangesOnlyTheBlocksOfTheBucketsThatTakePart) {
  constexpr BucketRange kAll{.first = 0, .end = wire::kBuckets};
  const size_t values = wire::kBlockValues + 1;  // two blocks
  TensorBlocks tensor({.name = "d", .size = values}, kAll.first, kAll.end);
  tensor.Put(std::vector<float>(values, 0).data());
  std::vector<bool> members(wire::kBuckets);
  members[wire::BucketOfBlock("d", 1)] = true;
  const BucketSubset second(kAll, members);

  BucketSteps steps(kAll);
  steps.Begin(second);
  const std::vector<float> changes(values, 3);
  steps.Apply(TensorGradients{&tensor, changes.data(), 1}, second);

  std::vector<float> pulled(values);
  tensor.Pull(pulled.data());
  EXPECT_EQ(pulled.front(), 0);
  EXPECT_EQ(pulled.back(), 3);
}

}  // namespace
}  // namespace edl::ps
