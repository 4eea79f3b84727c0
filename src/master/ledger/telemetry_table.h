#pragma once

#include "telemetry/stored.h"

#include "base/status.h"
#include "master/ledger/sqlite.h"

namespace edl::master {

// The tables of a ledger with the curves of the job. They are only shown to users, so no error in
// them is an error of the ledger: what cannot be written is dropped.
//
// Confined to the thread of its database.
class TelemetryTable {
 public:
  static constexpr const char* kSchema = R"(
CREATE TABLE telemetry_series (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL);
CREATE TABLE telemetry_frames (
  level INTEGER, slot INTEGER, start INTEGER, points BLOB,
  PRIMARY KEY (level, slot)) WITHOUT ROWID;
)";

  // Prepares the writes. A failure is returned by Write.
  void Prepare(Database& database);

  // Keeps rows for the next Write.
  void Put(telemetry::Stored rows);
  // The next Write first deletes all rows.
  void Clear();
  bool HasRows() const { return clear_ || !rows_.empty(); }
  void DropRows();

  // Writes the rows into the open transaction, and drops them. After an error, the caller has to
  // roll the transaction back.
  Status Write();

  // DataLoss: the tables are damaged.
  static Result<telemetry::Stored> Read(Database& database);

 private:
  telemetry::Stored rows_;
  bool clear_ = false;
  Statement put_series_, put_frame_, clear_series_, clear_frames_;
};

}  // namespace edl::master
