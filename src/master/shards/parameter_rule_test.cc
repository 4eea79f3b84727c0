#include "master/shards/parameter_rule.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

class ParameterRuleTest : public ::testing::Test {
 protected:
  Dataset& Add(int64_t id, TaskType task_type) {
    DatasetSpec spec = Shards(2);
    spec.name = NameOf(task_type);
    spec.task_type = task_type;
    return table_.Add(DatasetId(id), std::move(spec));
  }
  static void CompleteAll(Dataset& dataset) {
    while (dataset.HasMore()) dataset.Done(*dataset.Take(Worker(0)));
  }

  Ledger ledger_ = *Ledger::Open(":memory:");
  DatasetTable table_{ledger_, /*seed=*/1};
  Dataset& training_ = Add(1, TaskType::kTraining);
  Dataset& evaluation_ = Add(2, TaskType::kEvaluation);
  ParameterRule rule_;
};

TEST_F(ParameterRuleTest, AppliesToNothingWhileParametersAreKeptElsewhere) {
  EXPECT_FALSE(rule_.AppliesTo(training_));
  EXPECT_FALSE(rule_.DelaysEnd(training_));
  EXPECT_FALSE(rule_.TrainingComplete(table_));
  EXPECT_EQ(rule_.ps_epoch(), PsEpoch());
  EXPECT_TRUE(rule_.DoneShards(table_).datasets.empty());
}

TEST_F(ParameterRuleTest, AppliesToTrainingDatasetsOnly) {
  rule_.Set({.ledger = LedgerId(5), .ps_epoch = PsEpoch(2)});

  EXPECT_TRUE(rule_.AppliesTo(training_));
  EXPECT_FALSE(rule_.AppliesTo(evaluation_));
  EXPECT_EQ(rule_.ledger(), LedgerId(5));
}

TEST_F(ParameterRuleTest, ReopensAShardThatWasPushedInAnOlderEpoch) {
  rule_.Set({.ps_epoch = PsEpoch(2)});

  EXPECT_TRUE(rule_.MustReopen(training_, {.ps_epoch = PsEpoch(1)}));
  EXPECT_FALSE(rule_.MustReopen(training_, {.ps_epoch = PsEpoch(2)}));
  EXPECT_FALSE(rule_.MustReopen(training_, {.ps_epoch = PsEpoch(0)}))
      << "it was not opened at servers";
  EXPECT_FALSE(rule_.MustReopen(evaluation_, {.ps_epoch = PsEpoch(1)}));
  EXPECT_FALSE(
      rule_.MustReopen(training_, {.outcome = ShardOutcome::kFailed, .ps_epoch = PsEpoch(1)}));
}

TEST_F(ParameterRuleTest, DelaysTheEndUntilAllIsDoneAndDurable) {
  rule_.Set({.ps_epoch = PsEpoch(1), .durable = true});
  EXPECT_TRUE(rule_.DelaysEnd(training_)) << "shards are left";
  CompleteAll(training_);
  EXPECT_FALSE(rule_.DelaysEnd(training_));

  rule_.Set({.ps_epoch = PsEpoch(1), .durable = false});

  EXPECT_TRUE(rule_.DelaysEnd(training_));
  EXPECT_FALSE(rule_.DelaysEnd(evaluation_));
}

TEST_F(ParameterRuleTest, CompletesTrainingWithoutTheEvaluationData) {
  rule_.Set({.ps_epoch = PsEpoch(1)});
  EXPECT_FALSE(rule_.TrainingComplete(table_));

  CompleteAll(training_);

  EXPECT_TRUE(rule_.TrainingComplete(table_));
}

TEST_F(ParameterRuleTest, ReopensDoneShardsThatACheckpointDoesNotCover) {
  rule_.Set({.ps_epoch = PsEpoch(1)});
  training_.Done(*training_.Take(Worker(0)));
  const checkpoint::ShardSet covered = rule_.DoneShards(table_);
  CompleteAll(training_);
  CompleteAll(evaluation_);

  EXPECT_EQ(rule_.Reopen(covered, table_), 1);

  EXPECT_FALSE(training_.Complete());
  EXPECT_EQ(training_.returned_count(), 1u);
  EXPECT_TRUE(evaluation_.Complete());
}

}  // namespace
}  // namespace edl::master
