#include "master/ledger/telemetry_table.h"

#include <iterator>
#include <limits>
#include <utility>

#include "telemetry/store.h"

namespace edl::master {
namespace {

// -1, which no row has, for a number that has no place in an int.
int SmallNumber(int64_t number) {
  return number >= 0 && number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : -1;
}

Status ReadSeries(Database& database, telemetry::Stored& out) {
  Statement query = database.Prepare(
      "SELECT id, length(name), length(unit), name, unit FROM telemetry_series ORDER BY id");
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) return Ok();
    const int id = SmallNumber(query.Int(0));
    constexpr int64_t kLongest = telemetry::Store::kLongestName;
    if (id < 0 || id >= static_cast<int>(telemetry::kMostSeries) || query.Int(1) > kLongest ||
        query.Int(2) > kLongest) {
      return DataLoss("a series has the id {} or a name of {} characters", query.Int(0),
                      query.Int(1));
    }
    out.series.push_back(
        {telemetry::SeriesId(static_cast<uint8_t>(id)), query.Text(3), query.Text(4)});
  }
}

Status ReadFrames(Database& database, telemetry::Stored& out) {
  constexpr size_t kMostFrames =
      size_t{telemetry::Store::kLevels} * telemetry::Store::kFramesPerLevel;
  constexpr int64_t kLargest = telemetry::kMostSeries * telemetry::kLargestPoint;
  Statement query =
      database.Prepare("SELECT level, slot, start, length(points), points FROM telemetry_frames");
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) return Ok();
    if (query.Int(3) > kLargest || out.frames.size() == kMostFrames) {
      return DataLoss("there are more than {} frames, or one has {} bytes", out.frames.size(),
                      query.Int(3));
    }
    out.frames.push_back({.level = SmallNumber(query.Int(0)),
                          .slot = SmallNumber(query.Int(1)),
                          .start = query.Int(2),
                          .points = query.Bytes(4)});
  }
}

}  // namespace

void TelemetryTable::Prepare(Database& database) {
  put_series_ = database.Prepare("INSERT OR REPLACE INTO telemetry_series VALUES (?,?,?)");
  put_frame_ = database.Prepare("INSERT OR REPLACE INTO telemetry_frames VALUES (?,?,?,?)");
  clear_series_ = database.Prepare("DELETE FROM telemetry_series");
  clear_frames_ = database.Prepare("DELETE FROM telemetry_frames");
}

void TelemetryTable::Put(telemetry::Stored rows) {
  std::ranges::move(rows.series, std::back_inserter(rows_.series));
  std::ranges::move(rows.frames, std::back_inserter(rows_.frames));
}

void TelemetryTable::Clear() {
  DropRows();
  clear_ = true;
}

void TelemetryTable::DropRows() {
  rows_ = {};
  clear_ = false;
}

Status TelemetryTable::Write() {
  const telemetry::Stored rows = std::exchange(rows_, {});
  if (std::exchange(clear_, false)) {
    EDL_RETURN_IF_ERROR(clear_series_.Run());
    EDL_RETURN_IF_ERROR(clear_frames_.Run());
  }
  for (const telemetry::StoredSeries& row : rows.series) {
    EDL_RETURN_IF_ERROR(put_series_.Run(int64_t{row.id.value()}, row.name, row.unit));
  }
  for (const telemetry::StoredFrame& row : rows.frames) {
    EDL_RETURN_IF_ERROR(put_frame_.Run(row.level, row.slot, row.start, Blob{row.points}));
  }
  return Ok();
}

Result<telemetry::Stored> TelemetryTable::Read(Database& database) {
  telemetry::Stored stored;
  EDL_RETURN_IF_ERROR(ReadSeries(database, stored));
  EDL_RETURN_IF_ERROR(ReadFrames(database, stored));
  return stored;
}

}  // namespace edl::master
