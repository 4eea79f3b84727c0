#include "checkpoint/shard_set.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::checkpoint {
namespace {

ShardSet Example() {
  ShardSet set{.ledger = job::LedgerId(77)};
  ShardSet::Dataset& dataset = set.datasets[job::DatasetId(3)];
  dataset.generation = 2;
  dataset.epochs.AddRange({0, 1});
  dataset.shards[2].AddRange({5, 9});
  return set;
}

TEST(ShardSet, KnowsWholeEpochsAndRangesOfOthers) {
  const ShardSet set = Example();
  EXPECT_TRUE(set.Contains(job::DatasetId(3), 2, 1, 1'000'000));
  EXPECT_TRUE(set.Contains(job::DatasetId(3), 2, 2, 9));
  EXPECT_FALSE(set.Contains(job::DatasetId(3), 2, 2, 10));
  EXPECT_FALSE(set.Contains(job::DatasetId(3), 2, 3, 5));
  EXPECT_FALSE(set.Contains(job::DatasetId(4), 2, 0, 0));
}

TEST(ShardSet, HasAllOfAnEarlierGenerationAndNothingOfALaterOne) {
  const ShardSet set = Example();
  EXPECT_TRUE(set.Contains(job::DatasetId(3), 1, 50, 50));
  EXPECT_FALSE(set.Contains(job::DatasetId(3), 3, 0, 0));
}

TEST(ShardSet, IsReadAsItWasWritten) {
  const auto read = ShardSet::FromJson(Example().ToJson());
  ASSERT_OK(read);
  EXPECT_EQ(*read, Example());
}

TEST(ShardSet, RejectsInvalidText) {
  for (
      const char* text :
      {"", "[]", R"({"ledger": 1})", R"({"ledger": -1, "datasets": {}})",
       R"({"ledger": 1, "datasets": {"x": {"generation": 1, "epochs": [], "shards": {}}}})",
       R"({"ledger": 1, "datasets": {"1": {"generation": 1, "epochs": [[2, 1]], "shards": {}}}})",
       R"({"ledger": 1, "datasets": {"1": {"generation": 1, "epochs": [], "shards": {"0": 1}}}})"}) {
    EXPECT_THAT(ShardSet::FromJson(text), StatusIs(Code::kDataLoss)) << text;
  }
}

}  // namespace
}  // namespace edl::checkpoint
