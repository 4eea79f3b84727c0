#include "master/shards/dataset_table.h"

#include <utility>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

class DatasetTableTest : public ::testing::Test {
 protected:
  Dataset& Add(int64_t id, const char* name, int64_t epochs = 1) {
    DatasetSpec spec = Shards(2, epochs);
    spec.name = name;
    return table_.Add(DatasetId(id), std::move(spec));
  }
  static void CompleteOne(Dataset& dataset) { dataset.Done(*dataset.Take(Worker(0))); }
  static void CompleteAll(Dataset& dataset) {
    while (dataset.HasMore()) CompleteOne(dataset);
  }

  Ledger ledger_ = *Ledger::Open(":memory:");
  DatasetTable table_{ledger_, /*seed=*/1};
};

TEST_F(DatasetTableTest, FindsByNameAndById) {
  Dataset& added = Add(4, "a");

  EXPECT_EQ(table_.Find("a"), &added);
  EXPECT_EQ(table_.Find("b"), nullptr);
  EXPECT_EQ(&table_.Get(DatasetId(4)), &added);
}

TEST_F(DatasetTableTest, GivesEachDatasetItsOwnOrder) {
  EXPECT_NE(Add(1, "a").row().seed, Add(2, "b").row().seed);
}

TEST_F(DatasetTableTest, IsFinishedWhenAllDatasetsAre) {
  EXPECT_FALSE(table_.AllFinished()) << "there is no dataset";
  Dataset& one = Add(1, "a");
  Dataset& other = Add(2, "b");
  CompleteAll(one);
  EXPECT_FALSE(table_.AllFinished());
  EXPECT_TRUE(table_.AnythingLeft());

  CompleteAll(other);

  EXPECT_TRUE(table_.AllFinished());
  EXPECT_FALSE(table_.AnythingLeft());
}

TEST_F(DatasetTableTest, LeavesNothingInAnEndlessDataset) {
  Add(1, "a", /*epochs=*/-1);

  EXPECT_FALSE(table_.AnythingLeft());
  EXPECT_FALSE(table_.AllFinished());
}

TEST_F(DatasetTableTest, CountsTheRestAsNotTrainedUntilTheJobIsResumed) {
  Dataset& dataset = Add(1, "a");
  CompleteOne(dataset);

  table_.CountRestAsNotTrained();

  EXPECT_EQ(dataset.row().records_not_trained, 10);
  EXPECT_FALSE(table_.AnythingLeft());
  table_.Resume();
  EXPECT_TRUE(table_.AnythingLeft());
}

TEST_F(DatasetTableTest, BeginsALeftoverRoundOnlyAfterFinishedWasAnswered) {
  Dataset& dataset = Add(1, "a");
  EXPECT_FALSE(table_.BeginLeftoverRounds());

  dataset.set_told_finished();

  EXPECT_TRUE(table_.BeginLeftoverRounds());
}

TEST_F(DatasetTableTest, BeginsNoLeftoverRoundAfterOneThatCompletedNothing) {
  Dataset& dataset = Add(1, "a");
  dataset.set_told_finished();
  ASSERT_TRUE(table_.BeginLeftoverRounds());

  EXPECT_FALSE(table_.BeginLeftoverRounds());

  CompleteOne(dataset);
  EXPECT_TRUE(table_.BeginLeftoverRounds());
}

TEST_F(DatasetTableTest, LoadsWhatItFlushed) {
  Dataset& dataset = Add(1, "a");
  CompleteOne(dataset);
  dataset.Quarantine(*dataset.Take(Worker(0)), "bad record");
  table_.Flush();

  DatasetTable loaded(ledger_, /*seed=*/1);
  ASSERT_OK(loaded.Load());

  const Dataset* again = loaded.Find("a");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->row().records_done, 10);
  EXPECT_EQ(again->quarantined().size(), 1u);
  EXPECT_TRUE(loaded.AllFinished());
}

}  // namespace
}  // namespace edl::master
