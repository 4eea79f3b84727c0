#include "ps/synchronous_rounds.h"

#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNull;
using ::testing::Pair;

constexpr BucketRange kRange{.first = 0, .end = wire::kBuckets};
constexpr int64_t kOneId = 1;
constexpr int64_t kOtherId = 2;

// A table with SGD of dimension 1 and a tensor of one value, to which changes are added.
class SynchronousRoundsTest : public testing::Test {
 protected:
  SynchronousRoundsTest() {
    const float zero = 0;
    tensor_.Put(&zero);
  }

  // All buckets but that of an id.
  static BucketSubset AllBut(int64_t id) {
    std::vector<bool> members(wire::kBuckets, true);
    members[wire::BucketOf(id)] = false;
    return {kRange, members};
  }

  void AddRows(const std::vector<int64_t>& ids, float gradient, const BucketSubset& taking) {
    const std::vector<float> gradients(ids.size(), gradient);
    ASSERT_OK(table_.Reserve(ids.size()));
    rounds_.Add(TableGradients{&table_, ids, gradients.data(), 1}, taking);
    rounds_.Count(taking);
  }

  std::vector<float> Rows() {
    const std::vector<int64_t> ids = {kOneId, kOtherId};
    std::vector<float> rows(2);
    table_.Pull(ids, Table::Unknown::kTell, rows.data());
    return rows;
  }

  const BucketSubset all_{kRange, std::nullopt};
  Table table_{{.name = "t", .dim = 1, .optimizer = {.name = "SGD"}}};
  TensorBlocks tensor_{{.name = "d", .size = 1}, kRange.first, kRange.end};
  BucketSteps steps_{kRange};
  SynchronousRounds rounds_{kRange};
};

TEST_F(SynchronousRoundsTest, KeepsGradientsUntilTheRoundIsFull) {
  AddRows({kOneId, kOtherId}, -1, all_);
  rounds_.Close(2, steps_);
  EXPECT_THAT(Rows(), ElementsAre(0, 0));
  EXPECT_EQ(steps_.version(), 0U);

  AddRows({kOneId}, -1, all_);
  rounds_.Close(2, steps_);
  EXPECT_THAT(Rows(), ElementsAre(2, 1)) << "rows get the sum";
  EXPECT_EQ(steps_.version(), 1U);
  EXPECT_EQ(rounds_.contributors(0), 0U);
}

TEST_F(SynchronousRoundsTest, AveragesTensors) {
  for (const float change : {2.0F, 4.0F}) {
    rounds_.Add(TensorGradients{&tensor_, &change, 1}, all_);
    rounds_.Count(all_);
  }
  rounds_.Close(2, steps_);
  float value = 0;
  tensor_.Pull(&value);
  EXPECT_EQ(value, 3);
}

TEST_F(SynchronousRoundsTest, ClosesTheRoundOfEachBucketByItself) {
  AddRows({kOneId, kOtherId}, -1, AllBut(kOneId));
  AddRows({kOneId, kOtherId}, -1, all_);
  EXPECT_THAT(rounds_.ContributedBounds(), Pair(1, 2));

  rounds_.Close(2, steps_);

  EXPECT_THAT(Rows(), ElementsAre(0, 2));
  EXPECT_THAT(rounds_.FindRows(table_)->ids, ElementsAre(kOneId)) << "its round is still open";
  EXPECT_EQ(rounds_.contributors(wire::BucketOf(kOneId)), 1U);
}

TEST_F(SynchronousRoundsTest, CountsContributorsOfClosedRounds) {
  for (int push = 0; push < 3; ++push) {
    AddRows({kOneId}, -1, all_);
    rounds_.Close(2, steps_);
  }
  EXPECT_THAT(rounds_.ContributedBounds(), Pair(3, 3));
}

TEST_F(SynchronousRoundsTest, WithoutContributorsIsNoStep) {
  rounds_.Close(1, steps_);
  EXPECT_EQ(steps_.version(), 0U);
  EXPECT_THAT(rounds_.FindRows(table_), IsNull());
  EXPECT_THAT(rounds_.FindBlocks(tensor_), IsNull());
}

TEST_F(SynchronousRoundsTest, ContinuesARestoredRound) {
  for (size_t bucket = 0; bucket < kRange.end; ++bucket) {
    rounds_.RestoreCounts(static_cast<wire::Bucket>(bucket), 1, 5);
  }
  const float restored = -10;
  rounds_.AddRow(table_, kOneId, &restored, 1);
  AddRows({kOneId}, -1, all_);

  rounds_.Close(2, steps_);

  EXPECT_THAT(Rows(), ElementsAre(11, 0));
  EXPECT_THAT(rounds_.ContributedBounds(), Pair(6, 6));
}

}  // namespace
}  // namespace edl::ps
