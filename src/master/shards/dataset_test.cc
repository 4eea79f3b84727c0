#include "master/shards/dataset.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

constexpr int64_t kRecordsPerShard = 10;

// A dataset with its own ledger, without a master.
class DatasetTest : public ::testing::Test {
 protected:
  Dataset Make(DatasetSpec spec) {
    DatasetRow row{.id = DatasetId(1), .spec = std::move(spec), .seed = 42};
    ledger_.Put(row);
    return Dataset(std::move(row), ledger_);
  }

  // The dataset as a restarted master loads it.
  Dataset Reload(Dataset& dataset) {
    dataset.Flush();
    EXPECT_OK(ledger_.Commit());
    Dataset loaded(ledger_.Datasets()->front(), ledger_);
    const std::vector<DoneRow> done = *ledger_.Done();
    const std::vector<ReturnedRow> returned = *ledger_.Returned();
    const std::vector<QuarantinedRow> quarantined = *ledger_.Quarantined();
    for (const DoneRow& row : done) loaded.LoadDone(row);
    for (const ReturnedRow& row : returned) loaded.LoadReturned(row);
    for (const QuarantinedRow& row : quarantined) loaded.LoadQuarantined(row);
    const std::vector<DoneRow> restored = *ledger_.Restored();
    for (const DoneRow& row : restored) loaded.LoadRestored(row);
    return loaded;
  }

  Ledger ledger_ = *Ledger::Open(":memory:");
};

ShardPosition TakeKey(Dataset& dataset, ReplicaRef caller = Worker(0)) {
  const auto taken = dataset.Take(caller);
  if (!taken.has_value()) {
    ADD_FAILURE() << "there is no shard to take";
    return {};
  }
  return taken->key;
}

// How often each record occurs in the shards of `epoch`.
std::map<int64_t, int> RecordsOf(const Dataset& dataset, int64_t epoch) {
  std::map<int64_t, int> times;
  for (uint64_t ordinal = 0; ordinal < dataset.shards_per_epoch(); ++ordinal) {
    LeasedShard shard{.key = {epoch, ordinal}};
    dataset.Fill(shard);
    if (shard.indices.empty()) {
      for (int64_t record = shard.start; record < shard.end; ++record) ++times[record];
    }
    for (const int64_t record : shard.indices) ++times[record];
  }
  return times;
}

void ExpectEachOnce(const std::map<int64_t, int>& times, int64_t size) {
  EXPECT_EQ(times.size(), static_cast<size_t>(size));
  EXPECT_EQ(times.begin()->first, 0);
  EXPECT_EQ(times.rbegin()->first, size - 1);
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& r) { return r.second == 1; }));
}

std::vector<int64_t> StartsOf(const Dataset& dataset, int64_t epoch) {
  std::vector<int64_t> starts;
  for (uint64_t ordinal = 0; ordinal < dataset.shards_per_epoch(); ++ordinal) {
    LeasedShard shard{.key = {epoch, ordinal}};
    dataset.Fill(shard);
    starts.push_back(shard.start);
  }
  return starts;
}

TEST_F(DatasetTest, HandsOutShardsInOrderAndTheLastOneShort) {
  DatasetSpec spec = Shards(3);
  spec.size = 25;
  Dataset dataset = Make(spec);

  std::vector<std::pair<int64_t, int64_t>> ranges;
  while (dataset.HasMore()) {
    LeasedShard shard{.key = TakeKey(dataset)};
    dataset.Fill(shard);
    ranges.emplace_back(shard.start, shard.end);
  }

  EXPECT_EQ(ranges, (std::vector<std::pair<int64_t, int64_t>>{{0, 10}, {10, 20}, {20, 25}}));
}

TEST_F(DatasetTest, CountsTheBatchesOfTheShortShardRoundedUp) {
  DatasetSpec spec = Shards(2);
  spec.size = 16;  // 5 + 5, 5 + 1
  Dataset dataset = Make(spec);
  const ShardPosition full = TakeKey(dataset);
  const ShardPosition last = TakeKey(dataset);

  EXPECT_EQ(dataset.Done({.key = full}), 2);
  EXPECT_EQ(dataset.Done({.key = last}), 2);
  EXPECT_EQ(dataset.row().records_done, 16);
}

TEST_F(DatasetTest, BeginsTheNextEpochWhileShardsOfTheLastAreOut) {
  Dataset dataset = Make(Shards(2, /*epochs=*/2));

  std::vector<ShardPosition> keys;
  while (dataset.HasMore()) keys.push_back(TakeKey(dataset));

  EXPECT_EQ(keys, (std::vector<ShardPosition>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_FALSE(dataset.Complete());
}

TEST_F(DatasetTest, CompletesEpochsInAnyOrder) {
  Dataset dataset = Make(Shards(2, /*epochs=*/2));
  while (dataset.HasMore()) TakeKey(dataset);

  for (const ShardPosition key : {ShardPosition{1, 1}, ShardPosition{1, 0}, ShardPosition{0, 1}})
    dataset.Done({.key = key});
  EXPECT_TRUE(dataset.EpochComplete(1));
  EXPECT_FALSE(dataset.EpochComplete(0));
  EXPECT_FALSE(dataset.Complete());

  dataset.Done({.key = {0, 0}});
  EXPECT_TRUE(dataset.Complete());
}

TEST_F(DatasetTest, WithoutEpochsNeverEnds) {
  Dataset dataset = Make(Shards(1, /*epochs=*/0));

  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    EXPECT_EQ(TakeKey(dataset), (ShardPosition{epoch, 0}));
    dataset.Done({.key = {epoch, 0}});
  }

  EXPECT_TRUE(dataset.HasMore());
  EXPECT_FALSE(dataset.Complete());
}

TEST_F(DatasetTest, GivesWhatCameBackBeforeWhatIsNew) {
  Dataset dataset = Make(Shards(3));
  const ShardPosition first = TakeKey(dataset);
  TakeKey(dataset);

  dataset.Return({.key = first});

  EXPECT_EQ(TakeKey(dataset), first);
  EXPECT_EQ(TakeKey(dataset), (ShardPosition{0, 2}));
  EXPECT_EQ(dataset.row().shards_repeated, 1);
}

TEST_F(DatasetTest, ShuffledShardsHoldEveryRecordOnceAndTheShortOneLast) {
  DatasetSpec spec = Shards(40);
  spec.size = 395;
  spec.order = Order::kShuffleShards;
  const Dataset dataset = Make(spec);

  const std::vector<int64_t> starts = StartsOf(dataset, 0);

  ExpectEachOnce(RecordsOf(dataset, 0), spec.size);
  EXPECT_FALSE(std::is_sorted(starts.begin(), starts.end()));
  EXPECT_EQ(starts.back(), 390);
}

TEST_F(DatasetTest, ShuffledRecordsComeOnceAnEpochInAnotherOrderEach) {
  DatasetSpec spec = Shards(20, /*epochs=*/2);
  spec.size = 197;
  spec.order = Order::kShuffleRecords;
  const Dataset dataset = Make(spec);

  LeasedShard first{.key = {0, 0}};
  LeasedShard first_of_next_epoch{.key = {1, 0}};
  dataset.Fill(first);
  dataset.Fill(first_of_next_epoch);

  ExpectEachOnce(RecordsOf(dataset, 0), spec.size);
  ExpectEachOnce(RecordsOf(dataset, 1), spec.size);
  EXPECT_EQ(first.indices.size(), static_cast<size_t>(kRecordsPerShard));
  EXPECT_NE(first.indices, first_of_next_epoch.indices);
}

TEST_F(DatasetTest, KeepsTheOrderOverAReloadAndChangesItWithAReset) {
  DatasetSpec spec = Shards(40);
  spec.order = Order::kShuffleShards;
  Dataset dataset = Make(spec);
  const std::vector<int64_t> before = StartsOf(dataset, 0);

  const Dataset loaded = Reload(dataset);
  EXPECT_EQ(StartsOf(loaded, 0), before);

  dataset.Reset();
  EXPECT_NE(StartsOf(dataset, 0), before);
}

TEST_F(DatasetTest, OffersAFailedShardToAnotherReplicaFirst) {
  Dataset dataset = Make(Shards(1));
  const ShardPosition key = TakeKey(dataset, Worker(0));

  dataset.Fail({.key = key}, Worker(0), "bad record");

  EXPECT_FALSE(dataset.Take(Worker(0)).has_value());
  const auto taken = dataset.Take(Worker(1));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->key, key);
  EXPECT_EQ(taken->failures, 1);
}

TEST_F(DatasetTest, TriesAFailedShardOnADifferentReplicaEachTime) {
  Dataset dataset = Make(Shards(1));
  const ShardPosition key = TakeKey(dataset, Worker(0));

  dataset.Fail({.key = key}, Worker(0), "bad record");
  dataset.Fail(*dataset.Take(Worker(1)), Worker(1), "bad record");

  EXPECT_FALSE(dataset.Take(Worker(0)).has_value());
  EXPECT_FALSE(dataset.Take(Worker(1)).has_value());
  EXPECT_TRUE(dataset.Take(Worker(2)).has_value());
}

TEST_F(DatasetTest, RepeatsALeftoverRoundThatWasLostALimitedNumberOfTimes) {
  Dataset dataset = Make(Shards(1));
  dataset.BeginLeftoverRound();
  for (int round = 0; round < Dataset::kForgivenRounds; ++round) {
    ASSERT_EQ(dataset.row().leftover_at, 0);
    dataset.ForgiveLeftoverRound();
    ASSERT_EQ(dataset.row().leftover_at, -1);
    dataset.BeginLeftoverRound();
  }

  dataset.ForgiveLeftoverRound();

  EXPECT_EQ(dataset.row().leftover_at, 0);
}

TEST_F(DatasetTest, QuarantinesAShardAtItsThirdFailure) {
  Dataset dataset = Make(Shards(2));
  const ShardPosition bad = TakeKey(dataset);
  const ShardPosition good = TakeKey(dataset);

  dataset.Fail({.key = bad}, Worker(0), "bad record");
  dataset.Fail(*dataset.Take(Worker(1)), Worker(1), "bad record");
  dataset.Fail(*dataset.Take(Worker(2)), Worker(2), "bad record 7");

  EXPECT_FALSE(dataset.HasMore());
  EXPECT_EQ(dataset.quarantined(), (std::map<ShardPosition, std::string>{{bad, "bad record 7"}}));
  EXPECT_EQ(dataset.row().records_done, 0);
  dataset.Done({.key = good});
  EXPECT_TRUE(dataset.Complete());
}

TEST_F(DatasetTest, ReloadsWhatIsDoneReturnedAndQuarantined) {
  Dataset dataset = Make(Shards(6, /*epochs=*/2));
  for (int i = 0; i < 7; ++i) TakeKey(dataset);
  dataset.Done({.key = {0, 1}});
  dataset.Done({.key = {0, 2}});
  dataset.Done({.key = {1, 0}});
  dataset.Return({.key = {0, 3}, .failures = 2});
  dataset.Fail({.key = {0, 4}, .failures = 2}, Worker(0), "bad record");

  Dataset loaded = Reload(dataset);

  EXPECT_TRUE(loaded.IsDone({0, 1}));
  EXPECT_TRUE(loaded.IsDone({0, 2}));
  EXPECT_TRUE(loaded.IsDone({1, 0}));
  EXPECT_FALSE(loaded.IsDone({0, 0}));
  EXPECT_EQ(loaded.quarantined().count({0, 4}), 1u);
  EXPECT_EQ(loaded.row().records_done, 30);
  const auto taken = loaded.Take(Worker(0));
  EXPECT_EQ(taken->key, (ShardPosition{0, 3}));
  EXPECT_EQ(taken->failures, 2);
  EXPECT_EQ(TakeKey(loaded), (ShardPosition{1, 1}));
}

TEST_F(DatasetTest, KeepsOneRangeInTheLedgerHoweverManyShardsAreDone) {
  Dataset dataset = Make(Shards(1000, /*epochs=*/3));
  while (dataset.HasMore()) {
    dataset.Done({.key = TakeKey(dataset)});
    dataset.Flush();
  }
  ASSERT_EQ(ledger_.Commit(), Ok());

  const std::vector<DoneRow> done = *ledger_.Done();

  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done.front().epoch, DoneRow::kEpochs);
  EXPECT_EQ(done.front().range, (RangeSet::Range{0, 2}));
}

TEST_F(DatasetTest, RestoresTheRemainingShardsAndLaterEpochsOnly) {
  Dataset dataset = Make(Shards(4, /*epochs=*/3));

  dataset.Restore(1, {{1, 1}, {3, 3}}, std::nullopt);

  EXPECT_EQ(dataset.row().generation, 2u);
  EXPECT_EQ(dataset.row().records_done, 40 + 20);
  std::vector<ShardPosition> keys;
  while (dataset.HasMore()) keys.push_back(TakeKey(dataset));
  EXPECT_EQ(keys, (std::vector<ShardPosition>{{1, 1}, {1, 3}, {2, 0}, {2, 1}, {2, 2}, {2, 3}}));
  for (const ShardPosition key : keys) dataset.Done({.key = key});
  EXPECT_TRUE(dataset.Complete());
}

TEST_F(DatasetTest, IsCompleteAfterARestoreFromBeyondItsLastEpoch) {
  Dataset dataset = Make(Shards(4, /*epochs=*/2));

  dataset.Restore(5, {}, std::nullopt);

  EXPECT_FALSE(dataset.HasMore());
  EXPECT_TRUE(dataset.Complete());
  EXPECT_EQ(dataset.row().records_done, 80);
}

// Done shards of epoch 0, and 0 to 1 of epoch 1.
checkpoint::ShardSet::Dataset Covered(std::vector<uint64_t> of_epoch_1) {
  checkpoint::ShardSet::Dataset covered{.generation = 1};
  covered.epochs.Add(0);
  for (const uint64_t ordinal : of_epoch_1) covered.shards[1].Add(ordinal);
  return covered;
}

TEST_F(DatasetTest, HandsOutAgainWhatWasDoneAndIsNotCovered) {
  Dataset dataset = Make(Shards(3, /*epochs=*/2));
  while (dataset.HasMore()) dataset.Done({.key = TakeKey(dataset)});
  ASSERT_TRUE(dataset.Complete());

  EXPECT_EQ(dataset.Reopen(Covered({1})), 2);

  EXPECT_FALSE(dataset.Complete());
  EXPECT_EQ(dataset.row().records_done, 60) << "what was counted stays counted";
  const auto first = dataset.Take(Worker(0));
  EXPECT_EQ(first->key, (ShardPosition{1, 0}));
  EXPECT_TRUE(first->counted);
  EXPECT_EQ(dataset.Done(*first), 0) << "its batches were counted before";
  EXPECT_EQ(dataset.Done(*dataset.Take(Worker(0))), 0);
  EXPECT_TRUE(dataset.Complete());
  EXPECT_TRUE(dataset.EpochComplete(1));
  EXPECT_EQ(dataset.row().records_done, 60);
}

TEST_F(DatasetTest, ReopensAllWhenNothingOfItsGenerationIsCovered) {
  Dataset dataset = Make(Shards(2));
  while (dataset.HasMore()) dataset.Done({.key = TakeKey(dataset)});
  checkpoint::ShardSet::Dataset covered = Covered({});
  covered.generation = 0;

  EXPECT_EQ(dataset.Reopen(covered), 2);
  EXPECT_EQ(dataset.Reopen(covered), 0) << "nothing is done any more";
}

TEST_F(DatasetTest, ReloadsWhatIsToBeDoneAgain) {
  Dataset dataset = Make(Shards(3, /*epochs=*/2));
  while (dataset.HasMore()) dataset.Done({.key = TakeKey(dataset)});
  dataset.Flush();
  dataset.Reopen(Covered({0}));
  dataset.Flush();

  Dataset loaded = Reload(dataset);

  EXPECT_TRUE(loaded.IsDone({1, 0}));
  EXPECT_FALSE(loaded.IsDone({1, 1}));
  EXPECT_FALSE(loaded.EpochComplete(1));
  EXPECT_TRUE(loaded.Take(Worker(0))->counted);
  EXPECT_EQ(loaded.row().records_again, 20);
}

// The first record of every shard of the first epoch, by ordinal.
std::vector<int64_t> StartsOf(const Dataset& dataset) {
  std::vector<int64_t> starts;
  for (uint64_t ordinal = 0; ordinal < dataset.shards_per_epoch(); ++ordinal) {
    LeasedShard shard{.key = {0, ordinal}};
    dataset.Fill(shard);
    starts.push_back(shard.start);
  }
  return starts;
}

TEST_F(DatasetTest, KeepsItsOrderOverARestoreAndDrawsANewOneForAReset) {
  DatasetSpec spec = Shards(50);
  spec.order = Order::kShuffleShards;
  Dataset dataset = Make(spec);
  const std::vector<int64_t> before = StartsOf(dataset);
  const ShardOrder saved = dataset.order();

  dataset.Restore(0, {{25, 49}}, saved);
  EXPECT_EQ(StartsOf(dataset), before);

  dataset.Reset();
  EXPECT_NE(StartsOf(dataset), before);
  dataset.Flush();
  Dataset loaded = Reload(dataset);
  EXPECT_EQ(StartsOf(loaded), StartsOf(dataset));

  dataset.Restore(0, {{25, 49}}, saved);
  EXPECT_EQ(StartsOf(dataset), before) << "the checkpoint is from before the reset";
}

TEST_F(DatasetTest, KeepsShardsDoneThatARestoreDeclaredDone) {
  Dataset dataset = Make(Shards(4, /*epochs=*/3));
  dataset.Restore(2, {{1, 3}}, std::nullopt);
  dataset.Done({.key = TakeKey(dataset)});
  dataset.Flush();

  EXPECT_EQ(dataset.Reopen({}), 1) << "only what was trained here";
  EXPECT_TRUE(dataset.EpochComplete(0));
  EXPECT_TRUE(dataset.IsDone({2, 0}));
  EXPECT_FALSE(dataset.IsDone({2, 1}));
  dataset.Flush();

  Dataset loaded = Reload(dataset);
  loaded.Done(*loaded.Take(Worker(0)));
  EXPECT_EQ(loaded.Reopen({}), 1) << "the ledger keeps it";
}

TEST_F(DatasetTest, TriesAgainWhatWasQuarantinedWhenItsJobIsResumed) {
  Dataset dataset = Make(Shards(3));
  const ShardPosition bad = TakeKey(dataset);
  dataset.Fail({.key = bad, .failures = 2}, Worker(0), "bad record");
  dataset.Done({.key = TakeKey(dataset)});
  dataset.Done({.key = TakeKey(dataset)});
  dataset.Flush();
  ASSERT_TRUE(dataset.EpochComplete(0));

  Dataset loaded = Reload(dataset);
  loaded.Resume();
  loaded.Flush();

  EXPECT_TRUE(loaded.quarantined().empty());
  EXPECT_FALSE(loaded.Complete());
  Dataset again = Reload(loaded);
  const auto taken = again.Take(Worker(0));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->key, bad);
  EXPECT_EQ(taken->failures, 0);
  again.Done(*taken);
  EXPECT_TRUE(again.Complete());
  EXPECT_EQ(again.row().records_done, 30);
}

TEST_F(DatasetTest, TruncatesALongErrorMessage) {
  Dataset dataset = Make(Shards(1));
  TakeKey(dataset);

  dataset.Fail({.key = {0, 0}, .failures = 2}, Worker(0), std::string(1'000'000, 'x'));

  EXPECT_EQ(dataset.quarantined().at({0, 0}).size(), Dataset::kLongestError);
}

TEST_F(DatasetTest, LeavesWhatWasQuarantinedAsItIs) {
  Dataset dataset = Make(Shards(1));
  TakeKey(dataset);
  dataset.Fail({.key = {0, 0}, .failures = 2}, Worker(0), "bad record");
  ASSERT_TRUE(dataset.Complete());

  EXPECT_EQ(dataset.Reopen({}), 0);
  EXPECT_TRUE(dataset.Complete());
}

TEST_F(DatasetTest, CountsTheRestThatIsGivenUpAsNotTrained) {
  Dataset dataset = Make(Shards(4));
  dataset.Done({.key = TakeKey(dataset)});
  TakeKey(dataset);

  dataset.CountRestAsNotTrained();

  EXPECT_EQ(dataset.row().records_not_trained, 30);
}

TEST_F(DatasetTest, CostsNothingMoreForVeryManyRecords) {
  DatasetSpec spec = Shards(1, /*epochs=*/10);
  spec.size = 100'000'000'000;
  spec.order = Order::kShuffleRecords;
  Dataset dataset = Make(spec);

  LeasedShard shard{.key = TakeKey(dataset)};
  dataset.Fill(shard);

  EXPECT_EQ(dataset.shards_per_epoch(), 10'000'000'000u);
  EXPECT_EQ(shard.indices.size(), static_cast<size_t>(kRecordsPerShard));
}

TEST(DatasetCheck, BoundsAShardWhoseRecordsAreShuffled) {
  DatasetSpec spec{.name = "d",
                   .size = int64_t{1} << 40,
                   .batch_size = 1000,
                   .batches_per_shard = 1'000'000,
                   .order = Order::kShuffleRecords};
  EXPECT_THAT(Dataset::Check(spec), StatusIs(Code::kInvalidArgument));
  spec.batches_per_shard = 1000;
  EXPECT_OK(Dataset::Check(spec));
  spec.batches_per_shard = 1'000'000;
  spec.order = Order::kShuffleShards;
  EXPECT_OK(Dataset::Check(spec));
}

TEST(DatasetCheck, RefusesWhatCannotBeCounted) {
  DatasetSpec nameless = Shards(1);
  nameless.name = "";
  DatasetSpec empty = Shards(1);
  empty.size = 0;
  DatasetSpec no_batch = Shards(1);
  no_batch.batch_size = 0;
  DatasetSpec no_shard = Shards(1);
  no_shard.batches_per_shard = -1;
  DatasetSpec too_many = Shards(1);
  too_many.size = int64_t{1} << 40;
  too_many.epochs = int64_t{1} << 40;

  for (const DatasetSpec& spec : {nameless, empty, no_batch, no_shard, too_many}) {
    EXPECT_THAT(Dataset::Check(spec), StatusIs(Code::kInvalidArgument));
  }
  EXPECT_OK(Dataset::Check(Shards(1)));
}

}  // namespace
}  // namespace edl::master
