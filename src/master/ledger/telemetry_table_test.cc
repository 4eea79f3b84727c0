#include "master/ledger/telemetry_table.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "telemetry/store.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "master/ledger/ledger.h"
#include "master/testing/small_disk.h"

namespace edl::master {
namespace {

namespace fs = std::filesystem;
using telemetry::SeriesId;
using telemetry::Store;
using telemetry::Stored;

// The frame of one second with one value.
Stored OneFrame(int slot, int64_t start) {
  telemetry::Point point{.series = SeriesId(0)};
  point.Add(1, -1);
  return {
      .series = {{SeriesId(0), "loss", "nats"}},
      .frames = {
          {.level = 0, .slot = slot, .start = start, .points = telemetry::EncodeFrame({point})}}};
}

// More than a small disk has room for.
Stored Large() {
  Stored large;
  for (int slot = 0; slot < Store::kFramesPerLevel; ++slot) {
    large.frames.push_back({.level = 0, .slot = slot, .points = std::string(3000, 'x')});
  }
  return large;
}

class TelemetryInALedger : public ::testing::Test {
 protected:
  // Runs SQL on the file, which no ledger has open.
  void Execute(const std::string& sql) {
    Database database = *Database::Open(path_, Database::Mode::kReadWrite);
    ASSERT_EQ(database.Execute(sql), Ok());
  }

  const TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "ledger.sqlite").string();
};

TEST_F(TelemetryInALedger, IsKeptWithTheNextCommit) {
  {
    Ledger ledger = *Ledger::Open(path_);
    ledger.PutTelemetry(OneFrame(5, 77));
    ASSERT_EQ(ledger.Commit(), Ok());
    ledger.PutTelemetry(OneFrame(6, 78));
  }

  Ledger ledger = *Ledger::Open(path_);

  ASSERT_OK_AND_ASSIGN(const Stored read, ledger.Telemetry());
  ASSERT_EQ(read.series.size(), 1);
  EXPECT_EQ(read.series[0].name, "loss");
  EXPECT_EQ(read.series[0].unit, "nats");
  ASSERT_EQ(read.frames.size(), 1) << "frame 6 was not committed";
  EXPECT_EQ(read.frames[0].slot, 5);
  EXPECT_EQ(read.frames[0].start, 77);
  EXPECT_EQ(read.frames[0].points, OneFrame(5, 77).frames[0].points);
  EXPECT_EQ(Store().Load(read), Ok());
}

TEST_F(TelemetryInALedger, ReplacesTheFrameInASlot) {
  Ledger ledger = *Ledger::Open(path_);
  for (const int64_t start : {10, 200}) {
    ledger.PutTelemetry(OneFrame(5, start));
    ASSERT_EQ(ledger.Commit(), Ok());
  }

  ASSERT_OK_AND_ASSIGN(const Stored read, ledger.Telemetry());
  ASSERT_EQ(read.frames.size(), 1);
  EXPECT_EQ(read.frames[0].start, 200);

  ledger.ClearTelemetry();
  ASSERT_EQ(ledger.Commit(), Ok());
  EXPECT_TRUE(ledger.Telemetry()->empty());
}

TEST_F(TelemetryInALedger, IsDroppedByARollback) {
  Ledger ledger = *Ledger::Open(path_);
  ledger.PutTelemetry(OneFrame(5, 10));

  ledger.Rollback();

  ASSERT_EQ(ledger.Commit(), Ok());
  EXPECT_TRUE(ledger.Telemetry()->empty());
}

TEST_F(TelemetryInALedger, IsDroppedWhenTheDiskHasRoomForTheOtherRowsOnly) {
  {
    Ledger ledger = *Ledger::Open(path_);
    const SmallDisk disk(rlim_t{200} << 10);
    ledger.PutMeta("kept", "yes");
    ledger.PutTelemetry(Large());

    ASSERT_EQ(ledger.Commit(), Ok());
    EXPECT_FALSE(ledger.is_full());
    ledger.PutTelemetry(Large());
    EXPECT_EQ(ledger.Commit(), Ok()) << "with telemetry alone";
    ledger.PutMeta("also kept", "yes");
    ASSERT_EQ(ledger.Commit(), Ok());
  }

  Ledger ledger = *Ledger::Open(path_);
  EXPECT_TRUE(ledger.Meta()->contains("kept"));
  EXPECT_TRUE(ledger.Meta()->contains("also kept"));
  EXPECT_TRUE(ledger.Telemetry()->empty());
  ledger.PutTelemetry(OneFrame(1, 5));
  ASSERT_EQ(ledger.Commit(), Ok());
  EXPECT_EQ(ledger.Telemetry()->frames.size(), 1) << "it is stored when there is room again";
}

TEST_F(TelemetryInALedger, DoesNotHideThatTheDiskIsFullForTheOtherRows) {
  Ledger ledger = *Ledger::Open(path_);
  {
    const SmallDisk disk(rlim_t{200} << 10);
    ledger.PutMeta("large", std::string(300'000, 'x'));
    ledger.PutTelemetry(Large());
    EXPECT_THAT(ledger.Commit(), StatusIs(Code::kResourceExhausted));
    EXPECT_TRUE(ledger.is_full());
  }

  EXPECT_EQ(ledger.Commit(), Ok());

  EXPECT_TRUE(ledger.Meta()->contains("large"));
}

TEST_F(TelemetryInALedger, MayBeMissingWithoutHarmToTheOtherRows) {
  (void)*Ledger::Open(path_);
  Execute("DROP TABLE telemetry_frames");
  Ledger ledger = *Ledger::Open(path_);
  EXPECT_FALSE(ledger.Telemetry().ok());

  ledger.PutMeta("kept", "yes");
  ledger.PutTelemetry(OneFrame(1, 1));

  EXPECT_EQ(ledger.Commit(), Ok());
  EXPECT_TRUE(ledger.Meta()->contains("kept"));
}

TEST_F(TelemetryInALedger, MayBeDamagedWithoutHarmToTheOtherRows) {
  int64_t page = 0;
  {
    Ledger ledger = *Ledger::Open(path_);
    ledger.PutTelemetry(Large());
    ASSERT_EQ(ledger.Commit(), Ok());
    ASSERT_EQ(ledger.Checkpoint(), Ok());
  }
  {
    Database database = *Database::Open(path_, Database::Mode::kReadOnly);
    Statement query =
        database.Prepare("SELECT rootpage FROM sqlite_master WHERE name='telemetry_frames'");
    query.Start();
    ASSERT_TRUE(*query.Next());
    page = query.Int(0);
  }
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((page - 1) * 1024);
    file << std::string(1024, '\xff');
  }
  Ledger ledger = *Ledger::Open(path_);
  EXPECT_EQ(ledger.Telemetry().status().code(), Code::kDataLoss);

  ledger.ClearTelemetry();
  ledger.PutTelemetry(OneFrame(1, 1));
  ledger.PutMeta("kept", "yes");

  EXPECT_EQ(ledger.Commit(), Ok());
  EXPECT_TRUE(ledger.Meta()->contains("kept"));
}

TEST_F(TelemetryInALedger, IsNotReadIfItsRowsAreDamaged) {
  for (const char* damage :
       {"INSERT INTO telemetry_series VALUES (300, 'x', '')",
        "INSERT INTO telemetry_series VALUES (-1, 'x', '')",
        "INSERT INTO telemetry_series VALUES (1, printf('%1000c', 'x'), '')",
        "INSERT INTO telemetry_frames VALUES (0, 1, 2, zeroblob(100000000))"}) {
    fs::remove(path_);
    (void)*Ledger::Open(path_);
    Execute(damage);
    EXPECT_EQ(Ledger::Open(path_)->Telemetry().status().code(), Code::kDataLoss) << damage;
  }
  fs::remove(path_);
  (void)*Ledger::Open(path_);
  Execute("INSERT INTO telemetry_series VALUES (0, 'loss', '')");
  Execute("INSERT INTO telemetry_frames VALUES (4294967296, 0, 0, x'00040000803f')");
  EXPECT_EQ(Store().Load(*Ledger::Open(path_)->Telemetry()).code(), Code::kDataLoss);
}

// The budget of a job counts what the file has, with the pages of SQLite.
TEST_F(TelemetryInALedger, TakesAtMostItsBudgetInTheFile) {
  Ledger ledger = *Ledger::Open(path_);
  ASSERT_EQ(ledger.Checkpoint(), Ok());
  const auto before = fs::file_size(path_);
  std::vector<telemetry::Point> points;
  for (size_t id = 0; id < telemetry::kMostSeries; ++id) {
    points.push_back({.series = SeriesId(static_cast<uint8_t>(id)),
                      .count = telemetry::Point::kMostCount,
                      .last = 2,
                      .min = 1,
                      .max = 3,
                      .step = telemetry::Point::kMostStep});
  }
  for (int64_t round = 0; round < 3; ++round) {
    Stored all;
    for (int level = 0; level < Store::kLevels; ++level) {
      for (int slot = 0; slot < Store::kFramesPerLevel; ++slot) {
        all.frames.push_back({.level = level,
                              .slot = slot,
                              .start = (round * 1000 + slot) * Store::WidthOf(level),
                              .points = telemetry::EncodeFrame(points)});
      }
    }
    ledger.PutTelemetry(std::move(all));
    ASSERT_EQ(ledger.Commit(), Ok());
  }
  ASSERT_EQ(ledger.Checkpoint(), Ok());

  EXPECT_LE(fs::file_size(path_) - before, Store::kMostBytes);
}

}  // namespace
}  // namespace edl::master
