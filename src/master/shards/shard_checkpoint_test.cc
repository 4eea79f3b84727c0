#include "master/shards/shard_checkpoint.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

// The shards that are left in kData, in the order in which one worker leases them.
std::vector<ShardPosition> KeysLeft(CoreFixture& master) {
  OurClient worker(master, Worker(99));
  std::vector<ShardPosition> keys;
  for (const LeasedShard& shard : worker.LeaseMany(1000)) keys.push_back(shard.key);
  return keys;
}

// Three of five shards of the second epoch are done, one is leased.
std::string SavedInTheSecondEpoch() {
  CoreFixture master;
  master.Register(Shards(5, /*epochs=*/3));
  OurClient worker(master, Worker(0));
  const std::vector<LeasedShard> shards = worker.LeaseMany(10);
  for (const size_t done : {0, 1, 2, 3, 4, 5, 7, 9}) worker.Report(shards[done]);
  worker.Report(shards[6], ShardOutcome::kGivenBack);
  return *master.core().dispatcher().Save(kData);
}

TEST(ShardCheckpoint, BringsBackWhatWasNotDoneAndNothingElse) {
  CoreFixture master;

  ASSERT_OK(master.core().Restore(SavedInTheSecondEpoch()));

  EXPECT_EQ(master.Data().records_done, 80);
  EXPECT_EQ(KeysLeft(master),
            (std::vector<ShardPosition>{{1, 1}, {1, 3}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {2, 4}}));
}

TEST(ShardCheckpoint, RefusesDeeplyNestedTextInsteadOfRunningOutOfStack) {
  CoreFixture master;
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  // Everything else is valid, so the list is parsed.
  std::string in_list = SavedInTheSecondEpoch();
  const std::string todo = R"("todo":[)";
  in_list.insert(in_list.find(todo) + todo.size(), deep + ",");
  for (const std::string& content : {deep, R"({"version":)" + deep + "}", in_list}) {
    EXPECT_THAT(master.core().Restore(content), StatusIs(Code::kInvalidArgument));
  }
}

TEST(ShardCheckpoint, NamesLeasedShardsAsDoing) {
  const std::string saved = SavedInTheSecondEpoch();

  EXPECT_NE(saved.find(R"("current_epoch":1)"), std::string::npos) << saved;
  EXPECT_NE(saved.find(R"("todo":[[10,20]])"), std::string::npos) << saved;
  EXPECT_NE(saved.find(R"("doing":[[30,40]])"), std::string::npos) << saved;
}

TEST(ShardCheckpoint, KeepsItsOrderAndBatchesOverARoundTrip) {
  CoreFixture first;
  DatasetSpec spec = Shards(4, /*epochs=*/2);
  spec.order = Order::kShuffleRecords;
  first.Register(spec);
  CoreFixture second;

  const auto restored = second.core().Restore(*first.core().dispatcher().Save(kData));

  ASSERT_OK(restored);
  const Dataset& dataset = *second.core().dispatcher().Find(kData);
  EXPECT_EQ(dataset.spec().order, Order::kShuffleRecords);
  EXPECT_EQ(dataset.spec().batch_size, spec.batch_size);
  EXPECT_EQ(dataset.spec().batches_per_shard, spec.batches_per_shard);
}

TEST(ShardCheckpoint, LeavesTheSameRecordsOfAShuffledDatasetInAnyJob) {
  DatasetSpec spec = Shards(40);
  spec.order = Order::kShuffleShards;
  CoreFixture first;
  first.Register(spec);
  OurClient worker(first, Worker(0));
  std::set<int64_t> left;
  for (int64_t start = 0; start < spec.size; start += 10) left.insert(start);
  for (const LeasedShard& shard : worker.LeaseMany(20)) {
    worker.Report(shard);
    left.erase(shard.start);
  }
  const std::string saved = *first.core().dispatcher().Save(kData);
  CoreFixture second;
  DatasetSpec other = spec;
  other.name = "other";
  second.Register(other);  // so that the restored dataset would get another seed

  for (CoreFixture* master : {&first, &second}) {
    ASSERT_OK(master->core().Restore(saved));
    OurClient next(*master, Worker(1));
    std::set<int64_t> leased;
    for (const LeasedShard& shard : next.LeaseMany(100)) leased.insert(shard.start);
    EXPECT_EQ(leased, left);
  }
}

TEST(ShardCheckpoint, RefusesAnOrderThatIsNone) {
  CoreFixture master;
  std::string saved = SavedInTheSecondEpoch();
  saved.insert(1, R"("order_seed": -1, "order_generation": 1, )");

  EXPECT_THAT(master.core().Restore(saved), StatusIs(Code::kInvalidArgument));
}

TEST(ShardCheckpoint, VoidsLeasesFromBeforeTheRestore) {
  CoreFixture master;
  master.Register(Shards(2));
  const std::string saved = *master.core().dispatcher().Save(kData);
  OurClient worker(master, Worker(0));
  const LeasedShard old = worker.Lease();

  ASSERT_OK(master.core().Restore(saved));
  master.Commit();

  EXPECT_EQ(worker.Report(old), ReportVerdict::kLost);
  EXPECT_EQ(worker.LeaseMany(5).size(), 2u);
}

TEST(ShardCheckpoint, HoldsOverACrashAfterTheRestore) {
  CoreFixture master;
  ASSERT_OK(master.core().Restore(SavedInTheSecondEpoch()));
  master.Commit();

  master.CrashAndReload();

  EXPECT_EQ(master.Data().records_done, 80);
  EXPECT_EQ(KeysLeft(master).size(), 7u);
}

TEST(ShardCheckpoint, OfAFinishedDatasetLeavesNothingToDo) {
  CoreFixture first;
  first.Register(Shards(1));
  OurClient worker(first, Worker(0));
  worker.Report(worker.Lease());
  CoreFixture second;

  ASSERT_OK(second.core().Restore(*first.core().dispatcher().Save(kData)));

  EXPECT_TRUE(second.Data().finished);
}

TEST(ShardCheckpoint, OfAnEndlessDatasetGoesOnInItsEpoch) {
  CoreFixture first;
  first.Register(Shards(1, /*epochs=*/0));
  OurClient worker(first, Worker(0));
  for (int epoch = 0; epoch < 3; ++epoch) worker.Report(worker.Lease());
  CoreFixture second;

  ASSERT_OK(second.core().Restore(*first.core().dispatcher().Save(kData)));

  OurClient next(second, Worker(0));
  EXPECT_EQ(next.Lease().key, (ShardPosition{3, 0}));
}

TEST(ShardCheckpoint, ReadsWhatThePublishedPackagesWrote) {
  const std::string published =
      R"({"dataset_name": "train", "todo": [[20, 30], [40, 45]], "doing": [[0, 10]],)"
      R"( "current_epoch": 1, "num_epochs": 2, "records_per_task": 10, "dataset_size": 45,)"
      R"( "shuffle_shards": false, "version": "v1.0", "current_subepoch": 0})";
  CoreFixture master;

  const auto restored = master.core().Restore(published);

  ASSERT_OK(restored);
  EXPECT_EQ(KeysLeft(master), (std::vector<ShardPosition>{{1, 0}, {1, 2}, {1, 4}}));
}

TEST(ShardCheckpoint, LeavesNothingWhenTheDatasetHasFewerEpochsThanItSays) {
  CoreFixture longer;
  longer.Register(Shards(1, /*epochs=*/9));
  OurClient worker(longer, Worker(0));
  for (int epoch = 0; epoch < 5; ++epoch) worker.Report(worker.Lease());
  CoreFixture master;
  master.Register(Shards(1, /*epochs=*/2));

  ASSERT_OK(master.core().Restore(*longer.core().dispatcher().Save(kData)));

  EXPECT_TRUE(master.Data().finished);
  EXPECT_EQ(master.Data().records_done, 20);
}

TEST(ShardCheckpoint, IsRefusedByADatasetThatIsCutDifferently) {
  CoreFixture master;
  DatasetSpec other = Shards(5, /*epochs=*/3);
  other.batch_size = 7;
  master.Register(other);
  OurClient worker(master, Worker(0));
  const LeasedShard open = worker.Lease();

  const auto restored = master.core().Restore(SavedInTheSecondEpoch());

  EXPECT_THAT(restored, StatusIs(Code::kFailedPrecondition));
  EXPECT_NE(restored.status().message().find("train"), std::string::npos) << restored.status();
  EXPECT_EQ(worker.Report(open), ReportVerdict::kAccepted) << "a refused restore changes nothing";
}

TEST(ShardCheckpoint, IsRefusedWhenARangeIsNoRunOfWholeShards) {
  CoreFixture master;

  const auto restored = master.core().Restore(
      R"({"dataset_name": "train", "todo": [[5, 20]], "doing": [], "current_epoch": 0,)"
      R"( "num_epochs": 1, "records_per_task": 10, "dataset_size": 50, "version": "v1.0"})");

  EXPECT_THAT(restored, StatusIs(Code::kFailedPrecondition));
  EXPECT_NE(restored.status().message().find("[5, 20)"), std::string::npos) << restored.status();
}

TEST(ShardCheckpoint, RefusesForeignTextWithAReason) {
  const auto with = [](const char* epoch, const char* size, const char* todo, const char* version) {
    return fmt::format(
        R"({{"dataset_name": "train", "todo": {}, "doing": [], "current_epoch": {},)"
        R"( "num_epochs": 2, "records_per_task": 10, "dataset_size": {}, "version": {}}})",
        todo, epoch, size, version);
  };
  ASSERT_OK(ParseShards(with("0", "50", "[]", R"("v1.0")")));

  for (const std::string& foreign :
       {std::string(), std::string("not json"), std::string("[]"), std::string("{}"),
        std::string("\xff\xfe"), with("0", "50", "[]", R"("v2.0")"), with("0", "50", "[]", "1"),
        with("3", "50", "[]", R"("v1.0")"), with("-1", "50", "[]", R"("v1.0")"),
        with("0", "0", "[]", R"("v1.0")"), with("0", "\"50\"", "[]", R"("v1.0")"),
        with("0", "50", "[[0, 60]]", R"("v1.0")"), with("0", "50", "[[20, 10]]", R"("v1.0")"),
        with("0", "50", "[[-10, 10]]", R"("v1.0")"), with("0", "50", "[[0]]", R"("v1.0")"),
        with("0", "50", "{}", R"("v1.0")"), with("1e0", "50", "[]", R"("v1.0")")}) {
    const auto parsed = ParseShards(foreign);
    EXPECT_THAT(parsed, StatusIs(Code::kInvalidArgument)) << foreign;
    EXPECT_FALSE(parsed.status().message().empty()) << foreign;
  }
}

TEST(ShardCheckpoint, RefusesAnEpochWhoseRecordsCannotBeCounted) {
  const auto parsed = ParseShards(
      R"({"dataset_name": "train", "todo": [], "doing": [], "current_epoch": 1000000000,)"
      R"( "num_epochs": 0, "records_per_task": 10, "dataset_size": 4611686018427387904,)"
      R"( "version": "v1.0"})");

  EXPECT_THAT(parsed, StatusIs(Code::kInvalidArgument));
}

TEST(ShardCheckpoint, CannotBeSavedOfAnUnknownDataset) {
  CoreFixture master;

  EXPECT_THAT(master.core().dispatcher().Save("nothing"), StatusIs(Code::kNotFound));
}

}  // namespace
}  // namespace edl::master
