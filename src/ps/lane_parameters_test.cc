#include "ps/lane_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using ::testing::HasSubstr;

constexpr BucketRange kAll{.first = 0, .end = wire::kBuckets};

Declaration OneTable(size_t dim = 2) { return {.tables = {{.name = "t", .dim = dim}}}; }

TEST(LaneParameters, KeepsATableThatIsDeclaredAgain) {
  LaneParameters parameters(kAll);
  Table* const table = parameters.Add(OneTable()).tables[0];
  ASSERT_OK(parameters.Check(OneTable()));
  EXPECT_EQ(parameters.Add(OneTable()).tables[0], table);
  EXPECT_EQ(parameters.tables().size(), 1U);
}

TEST(LaneParameters, ListsParametersInTheOrderOfTheDeclaration) {
  LaneParameters parameters(kAll);
  const DeclaredParameters declared =
      parameters.Add({.tables = {{.name = "b", .dim = 1}, {.name = "a", .dim = 1}}});
  EXPECT_EQ(declared.tables[0]->spec().name, "b");
  EXPECT_EQ(declared.tables[1]->spec().name, "a");
}

TEST(LaneParameters, RejectsATableWithOtherSettings) {
  LaneParameters parameters(kAll);
  parameters.Add(OneTable(2));
  const Status status = parameters.Check(OneTable(3));
  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(status.message(), HasSubstr("table 't' was already declared with other settings"));
}

TEST(LaneParameters, RejectsAnotherConsistencyUntilItIsReopened) {
  LaneParameters parameters(kAll);
  parameters.Add(OneTable());
  Declaration rounds = OneTable();
  rounds.consistency.gradients = 3;
  EXPECT_THAT(parameters.Check(rounds), StatusIs(Code::kFailedPrecondition));
  EXPECT_FALSE(parameters.in_rounds());

  parameters.ReopenConsistency();
  ASSERT_OK(parameters.Check(rounds));
  parameters.Add(rounds);
  EXPECT_TRUE(parameters.in_rounds());
}

TEST(LaneParameters, HasNoTwoSavesAtOnce) {
  LaneParameters parameters(kAll);
  const SaveNumber first = parameters.BeginSave();
  EXPECT_TRUE(parameters.saving());
  EXPECT_DEATH(parameters.BeginSave(), "already running");
  parameters.EndSave(LaneParameters::SaveEnd::kCancelled);
  EXPECT_FALSE(parameters.saving());
  EXPECT_EQ(parameters.BeginSave(), first + 1);
}

TEST(LaneParameters, CountsRowsAndBytesOfAllTables) {
  LaneParameters parameters(kAll);
  const DeclaredParameters declared =
      parameters.Add({.tables = {{.name = "a", .dim = 1}, {.name = "b", .dim = 1}}});
  const int64_t id = 7;
  float row = 0;
  for (Table* const table : declared.tables) table->Pull({&id, 1}, Table::Unknown::kMake, &row);
  EXPECT_EQ(parameters.rows(), 2U);
  EXPECT_EQ(parameters.bytes(), declared.tables[0]->bytes() + declared.tables[1]->bytes());
  EXPECT_EQ(parameters.evicted(), 0U);
}

}  // namespace
}  // namespace edl::ps
