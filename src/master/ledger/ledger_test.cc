#include "master/ledger/ledger.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/status_matchers.h"
#include "master/ledger/ledger_report.h"
#include "master/ledger/sqlite.h"
#include "master/testing/core_fixture.h"
#include "master/testing/small_disk.h"

namespace edl::master {
namespace {

namespace fs = std::filesystem;

class LedgerFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ledger.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "ledger.sqlite").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Writes a ledger with one dataset and closes it.
  void WriteOne() {
    Ledger ledger = *Ledger::Open(path_);
    ledger.Put(DatasetRow{.id = DatasetId(1), .spec = Shards(3)});
    ASSERT_EQ(ledger.Commit(), Ok());
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(LedgerFile, KeepsWhatWasCommittedAndNothingElse) {
  {
    Ledger ledger = *Ledger::Open(path_);
    ledger.PutMeta("kept", "yes");
    ASSERT_EQ(ledger.Commit(), Ok());
    ledger.PutMeta("lost", "yes");
  }

  Ledger ledger = *Ledger::Open(path_);

  const auto meta = *ledger.Meta();
  EXPECT_TRUE(meta.contains("kept"));
  EXPECT_FALSE(meta.contains("lost"));
}

TEST_F(LedgerFile, KeepsEveryFieldOfItsRows) {
  const DatasetRow dataset{.id = DatasetId(3),
                           .spec = {.name = "d'\"; DROP TABLE leases; --",
                                    .size = 100'000'000'000,
                                    .batch_size = 5,
                                    .batches_per_shard = 2,
                                    .epochs = 7,
                                    .order = Order::kShuffleRecords,
                                    .task_type = TaskType::kEvaluation},
                           .seed = 18446744073709551615u,
                           .generation = 4,
                           .epoch = 6,
                           .next = 9,
                           .told_finished = true,
                           .leftover_at = 12,
                           .records_done = 13,
                           .shards_done = 14,
                           .shards_repeated = 15,
                           .records_not_trained = 16};
  const ReplicaRow replica{.name = "iris-edljob-chief-2",
                           .replica = Chief(2),
                           .index = 0,
                           .state = job::ReplicaState::kKilled,
                           .process_id = 4242,
                           .reason = "killed by SIGKILL"};
  {
    Ledger ledger = *Ledger::Open(path_);
    ledger.Put(dataset);
    ledger.Put(replica);
    ledger.Put(LeaseRow{.lease = LeaseId(8),
                        .dataset = DatasetId(3),
                        .key = {2, 5},
                        .holder = Incarnation(4),
                        .number = 6,
                        .task = 11,
                        .failures = 2});
    ledger.Put(SlotRow{.role = job::Role::kPs,
                       .index = 1,
                       .wanted = false,
                       .succeeded = true,
                       .failures = 2,
                       .idle_lives = 3,
                       .memory_bytes = 4});
    ASSERT_EQ(ledger.Commit(), Ok());
  }

  Ledger ledger = *Ledger::Open(path_);
  const DatasetRow read = ledger.Datasets()->front();
  const ReplicaRow read_replica = ledger.Replicas()->front();
  const LeaseRow lease = ledger.Leases()->front();
  const SlotRow slot = ledger.Slots()->front();

  EXPECT_EQ(read.spec.name, dataset.spec.name);
  EXPECT_EQ(read.spec.size, dataset.spec.size);
  EXPECT_EQ(read.spec.order, dataset.spec.order);
  EXPECT_EQ(read.spec.task_type, dataset.spec.task_type);
  EXPECT_EQ(read.seed, dataset.seed);
  EXPECT_EQ(read.generation, dataset.generation);
  EXPECT_EQ(read.epoch, dataset.epoch);
  EXPECT_EQ(read.next, dataset.next);
  EXPECT_TRUE(read.told_finished);
  EXPECT_EQ(read.leftover_at, 12);
  EXPECT_EQ(read.records_done, 13);
  EXPECT_EQ(read.shards_done, 14);
  EXPECT_EQ(read.shards_repeated, 15);
  EXPECT_EQ(read.records_not_trained, 16);
  EXPECT_EQ(read_replica.replica, Chief(2));
  EXPECT_EQ(read_replica.state, job::ReplicaState::kKilled);
  EXPECT_EQ(read_replica.process_id, 4242);
  EXPECT_EQ(lease.key, (ShardPosition{2, 5}));
  EXPECT_EQ(lease.holder, Incarnation(4));
  EXPECT_EQ(lease.task, 11);
  EXPECT_EQ(lease.failures, 2);
  EXPECT_EQ(slot.role, job::Role::kPs);
  EXPECT_FALSE(slot.wanted);
  EXPECT_TRUE(slot.succeeded);
  EXPECT_EQ(slot.idle_lives, 3);
}

TEST_F(LedgerFile, RejectsAnotherSchemaAndSaysWhatToDo) {
  for (const auto& [version, who] :
       {std::pair("3", "an older elasticdl"), std::pair("99", "a newer elasticdl")}) {
    fs::remove(path_);
    WriteOne();
    {
      Database database = *Database::Open(path_, Database::Mode::kReadWrite);
      ASSERT_EQ(database.Execute(fmt::format("PRAGMA user_version={}", version)), Ok());
    }
    for (const Status& status : {Ledger::Open(path_).status(), ReadLedgerView(path_).status()}) {
      EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
      EXPECT_NE(status.message().find(version), std::string::npos) << status;
      EXPECT_NE(status.message().find(who), std::string::npos) << status;
    }
  }
}

TEST_F(LedgerFile, SaysWhichFileAndUserWhenItCannotBeOpened) {
  const Result<Ledger> opened = Ledger::Open((folder_ / "none" / "ledger.sqlite").string());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("none/ledger.sqlite as user "), std::string::npos)
      << opened.status();
}

TEST_F(LedgerFile, CanBeOpenedByOneMasterOnly) {
  Ledger first = *Ledger::Open(path_);
  first.PutMeta("a", "b");
  ASSERT_EQ(first.Commit(), Ok());

  const auto second = Ledger::Open(path_);

  EXPECT_THAT(second, StatusIs(Code::kUnavailable));
  EXPECT_THAT(ReadLedgerJson(path_), StatusIs(Code::kUnavailable));
}

TEST_F(LedgerFile, CanBeReadWhenItsMasterHasExited) {
  WriteOne();

  const auto text = ReadLedgerJson(path_);

  ASSERT_OK(text);
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json.at("datasets").at(0).at("name"), kData);
  EXPECT_EQ(json.at("datasets").at(0).at("shards_per_epoch"), 3);
  Ledger again = *Ledger::Open(path_);
  EXPECT_EQ(again.Datasets()->size(), 1u) << "reading changes nothing";
}

TEST_F(LedgerFile, ThatIsMissingIsNotMadeByReadingIt) {
  EXPECT_THAT(ReadLedgerJson(path_), StatusIs(Code::kNotFound));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(LedgerFile, ThatIsSomethingElseIsRefused) {
  std::ofstream(path_) << std::string(10'000, 'x');

  EXPECT_THAT(Ledger::Open(path_), StatusIs(Code::kDataLoss));
  EXPECT_THAT(ReadLedgerJson(path_), StatusIs(Code::kDataLoss));
}

TEST_F(LedgerFile, InAFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(Ledger::Open((folder_ / "no" / "ledger.sqlite").string()).status().code(),
            Code::kNotFound);
}

TEST_F(LedgerFile, SaysAtCommitThatTheDiskIsFullAndKeepsWhatItHad) {
  {
    Ledger ledger = *Ledger::Open(path_);
    ledger.PutMeta("kept", "yes");
    ASSERT_EQ(ledger.Commit(), Ok());
    const SmallDisk disk(rlim_t{256} << 10);

    for (int i = 0; i < 100; ++i) ledger.PutMeta(std::to_string(i), std::string(10'000, 'x'));
    const Status committed = ledger.Commit();

    EXPECT_THAT(committed, StatusIs(Code::kResourceExhausted)) << committed;
    EXPECT_THAT(ledger.Commit(), StatusIs(Code::kResourceExhausted)) << "there is still no room";
    EXPECT_TRUE(ledger.is_full());
  }
  Ledger again = *Ledger::Open(path_);
  EXPECT_EQ(again.Meta()->size(), 1u);
}

TEST_F(LedgerFile, WritesAllOfItOnceThereIsRoomAgain) {
  Ledger ledger = *Ledger::Open(path_);
  {
    const SmallDisk disk(rlim_t{256} << 10);
    for (int i = 0; i < 100; ++i) ledger.PutMeta(std::to_string(i), std::string(10'000, 'x'));
    ASSERT_FALSE(ledger.Commit().ok());
    ledger.PutMeta("later", "yes");
    ASSERT_FALSE(ledger.Commit().ok());
  }

  EXPECT_OK(ledger.Commit());

  EXPECT_FALSE(ledger.is_full());
  EXPECT_EQ(ledger.Meta()->size(), 101u);
}

TEST_F(LedgerFile, IsOneFileAfterACheckpoint) {
  Ledger ledger = *Ledger::Open(path_);
  ledger.PutMeta("kept", "yes");
  ASSERT_EQ(ledger.Commit(), Ok());

  ASSERT_EQ(ledger.Checkpoint(), Ok());

  const fs::path copy = folder_ / "copy.sqlite";
  fs::copy_file(path_, copy);
  EXPECT_EQ(Ledger::ReadCopy(copy.string())->Meta()->at("kept"), "yes");
  EXPECT_EQ(fs::file_size(path_ + "-wal"), 0U);
}

TEST_F(LedgerFile, ThatIsEmptyIsNotFilledByReadingIt) {
  std::ofstream(path_).close();

  EXPECT_THAT(ReadLedgerJson(path_), StatusIs(Code::kDataLoss));
  EXPECT_EQ(fs::file_size(path_), 0U);
}

TEST_F(LedgerFile, WithADamagedSchemaIsRefused) {
  WriteOne();
  {
    Database database = *Database::Open(path_, Database::Mode::kReadWrite);
    for (const char* step : {"PRAGMA writable_schema=1",
                             "UPDATE sqlite_master SET sql='CREATE TABLE meta (' WHERE "
                             "name='meta'"}) {
      ASSERT_EQ(database.Execute(step), Ok());
    }
  }

  EXPECT_THAT(Ledger::Open(path_), StatusIs(Code::kDataLoss));
  EXPECT_THAT(ReadLedgerJson(path_), StatusIs(Code::kDataLoss));
}

TEST_F(LedgerFile, WithoutATableOfItsVersionIsAnErrorAndNoAbort) {
  WriteOne();
  {
    Database database = *Database::Open(path_, Database::Mode::kReadWrite);
    ASSERT_EQ(database.Execute("DROP TABLE meta"), Ok());
  }

  EXPECT_FALSE(Ledger::Open(path_).ok());
}

TEST(Sqlite, CallsAFullDatabaseResourceExhausted) {
  Database database = *Database::Open(":memory:", Database::Mode::kReadWrite);
  ASSERT_EQ(database.Execute("CREATE TABLE t (a TEXT); PRAGMA max_page_count=8"), Ok());
  Statement insert = database.Prepare("INSERT INTO t VALUES (?)");

  const Status status = insert.Run(std::string(1'000'000, 'x'));

  EXPECT_THAT(status, StatusIs(Code::kResourceExhausted)) << status;
}

TEST(LedgerWrites, DropWhatWasNotCommittedOnRollback) {
  Ledger ledger = *Ledger::Open(":memory:");
  ledger.PutMeta("kept", "yes");
  ASSERT_EQ(ledger.Commit(), Ok());
  ledger.PutMeta("lost", "yes");

  ledger.Rollback();

  EXPECT_EQ(ledger.Meta()->size(), 1u);
}

}  // namespace
}  // namespace edl::master
