#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "telemetry/stored.h"

#include "base/range_set.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/ledger/sqlite.h"
#include "master/ledger/telemetry_table.h"
#include "master/types.h"

namespace edl::master {

struct DatasetRow {
  DatasetId id;
  DatasetSpec spec;
  uint64_t seed = 0;
  uint32_t generation = 1;
  int64_t epoch = 0;  // the epoch that is being leased
  uint64_t next = 0;  // the first ordinal of `epoch` that was never leased
  bool told_finished = false;
  int64_t leftover_at = -1;  // records trained when the last leftover round began; -1: none began
  int64_t records_done = 0;
  int64_t shards_done = 0;
  int64_t shards_repeated = 0;
  int64_t records_not_trained = 0;
  int64_t records_again = 0;  // counted in records_done, and to be trained once more
  // The generation that determines the shuffled order. A reset draws a new order; a restore keeps
  // the order of the checkpoint.
  uint32_t order_generation = 1;
  bool closed = false;  // training has ended before its data: see Dataset::Close
};

// What was reported with a shard that is done.
struct ResultRow {
  DatasetId dataset;
  uint32_t generation = 0;
  uint64_t ordinal = 0;
  std::string result;
};
struct ResultPage {
  std::vector<ResultRow> rows;
  bool more = false;  // there are results with higher ordinals
};

struct LeaseRow {
  LeaseId lease;
  DatasetId dataset;
  ShardPosition key;
  Incarnation holder;
  uint64_t number = 0;  // of the call whose answer contains the lease
  int32_t task = 0;
  int failures = 0;
  bool counted = false;  // was done before, and servers lost its parameters: not counted again
};

struct ReturnedRow {
  DatasetId dataset;
  ShardPosition key;
  int failures = 0;
  std::string failed_by;  // names of replicas, shown to users
  bool counted = false;   // as in LeaseRow
};

struct QuarantinedRow {
  DatasetId dataset;
  ShardPosition key;
  std::string error;
};

// A range of done ordinals of one epoch, or, with epoch kEpochs, a range of complete epochs. The
// same row describes what a restored shard checkpoint declared done.
struct DoneRow {
  static constexpr int64_t kEpochs = -1;
  DatasetId dataset;
  int64_t epoch = 0;
  RangeSet::Range range;
};

struct SessionRow {
  Incarnation incarnation;
  ReplicaRef replica;
  bool compat_api = false;
  std::string process;
  std::string answers;  // see EncodeAnswers in session.h
};

struct ReplicaRow {
  std::string name;
  ReplicaRef replica;
  int index = 0;
  job::ReplicaState state = job::ReplicaState::kPending;
  bool joined = false;  // at our API, at least once
  int64_t process_id = 0;
  std::string reason;
};

struct SlotRow {
  job::Role role = job::Role::kWorker;
  int index = 0;
  bool wanted = true;
  bool succeeded = false;
  int failures = 0;    // exits of its replicas through their own fault
  int idle_lives = 0;  // replicas in a row that ended without progress
  int64_t memory_bytes = 0;
};

// The durable record of a job. Writes go into one open transaction. Nothing that depends on them
// may leave the process before Commit has returned Ok.
//
// Rows are written in two ways. Both are in the same transaction, so a crash keeps all or nothing.
// * Immediately, where something is decided: leases, returned and quarantined shards, replicas,
//   slots, and the `meta` entries of the job's state and end.
// * At Commit, once for many changes: dataset rows and their done ranges, sessions with their
//   stored answers, and the `meta` entries counters, sync, rendezvous, recent_calls and
//   parameters. Their owners keep a dirty flag, and Core::Commit calls their Flush.
//
// Telemetry is only shown to users. It is written with the other rows, but no failure to write it
// fails a Commit: it is dropped then.
//
// Commit returns the first error of a write. If the disk was full (is_full), call Commit again: it
// repeats all writes. After any other error the ledger must not be used any more.
//
// Confined: call it on the master's loop.
class Ledger {
 public:
  static constexpr int64_t kSchemaVersion = 6;

  // Opens or creates a ledger. FailedPrecondition: the file has another schema version.
  // Unavailable: another master has opened it. ":memory:": the ledger exists only as long as this
  // object.
  static Result<Ledger> Open(const std::string& path);
  // Reads a ledger that no master has open into memory and does not change the file. NotFound:
  // there is no file. DataLoss: the file is empty or damaged. FailedPrecondition: it has another
  // schema version.
  static Result<Ledger> ReadCopy(const std::string& path);

  void Put(const DatasetRow& row);
  void Put(const LeaseRow& row);
  void Delete(LeaseId lease);
  void Put(const ReturnedRow& row);
  void DeleteReturned(DatasetId dataset, ShardPosition key);
  void Put(const QuarantinedRow& row);
  void Put(const DoneRow& row);
  void DeleteDone(DatasetId dataset, int64_t epoch, uint64_t first);
  void DeleteDoneOfEpoch(DatasetId dataset, int64_t epoch);
  // Replaces the ranges that a restore declared done.
  void PutRestored(DatasetId dataset, const std::vector<DoneRow>& rows);
  void DeleteQuarantined(DatasetId dataset);
  void Put(const ResultRow& row);
  // Deletes all leases, done ranges, results, returned and quarantined shards of a dataset.
  void Clear(DatasetId dataset);
  void Put(const SessionRow& row);
  void Delete(Incarnation incarnation);
  void Put(const ReplicaRow& row);
  void DeleteReplica(const std::string& name);
  void Put(const SlotRow& row);
  void PutMeta(const std::string& key, const std::string& value);
  void PutTelemetry(telemetry::Stored rows) { telemetry_.Put(std::move(rows)); }
  void ClearTelemetry() { telemetry_.Clear(); }

  Result<std::vector<DatasetRow>> Datasets();
  Result<std::vector<LeaseRow>> Leases();
  Result<std::vector<ReturnedRow>> Returned();
  Result<std::vector<QuarantinedRow>> Quarantined();
  Result<std::vector<DoneRow>> Done();
  Result<std::vector<DoneRow>> Restored();
  Result<std::vector<SessionRow>> Sessions();
  Result<std::vector<ReplicaRow>> Replicas();
  Result<std::vector<SlotRow>> Slots();
  // The results of a dataset from ordinal `first` on, in their order: as many as fit into `most`
  // bytes, but at least one if there is any.
  Result<ResultPage> Results(DatasetId dataset, uint32_t generation, uint64_t first, size_t most);
  // All results, each with its size in place of its bytes.
  struct ResultSize {
    DatasetId dataset;
    uint64_t ordinal = 0;
    int64_t bytes = 0;
  };
  Result<std::vector<ResultSize>> ResultSizes();
  Result<std::map<std::string, std::string>> Meta();
  // DataLoss: the telemetry is damaged. The rest of the ledger may be whole.
  Result<telemetry::Stored> Telemetry() { return TelemetryTable::Read(database_); }

  // Makes all writes since the last Commit durable, with one fsync.
  Status Commit();
  // Whether Commit has something to write.
  bool has_writes() const { return is_full_ || database_.in_transaction(); }
  // The last Commit failed because the disk was full. It may be called again.
  bool is_full() const { return is_full_; }
  // Moves SQLite's write-ahead log into the database file, so that this file alone is the whole
  // ledger. REQUIRES: everything is committed.
  Status Checkpoint();
  // Drops all writes since the last Commit, as a crash would.
  void Rollback();

 private:
  explicit Ledger(Database database) : database_(std::move(database)) {}
  Result<int64_t> SchemaVersion();
  Status CreateOrCheckSchema();
  Status PrepareStatements();
  // Runs one write inside the open transaction. Keeps its error, and keeps the write itself until
  // Commit, to repeat it after a full disk.
  template <typename... Args>
  void Write(Statement Ledger::*statement, const Args&... args);
  void Run(const std::function<Status(Ledger&)>& write);
  // Repeats all writes since the last Commit in a new transaction.
  void Repeat();
  // Writes telemetry into the transaction. True: the transaction has some.
  bool WriteTelemetry();
  Result<std::vector<DoneRow>> Ranges(const char* table);

  Database database_;
  Status failed_;
  bool is_full_ = false;
  std::vector<std::function<Status(Ledger&)>> uncommitted_;
  TelemetryTable telemetry_;
  bool telemetry_failed_ = false;  // the last write of telemetry
  Statement put_dataset_, put_lease_, delete_lease_, put_returned_, delete_returned_,
      put_quarantined_, put_done_, delete_done_, delete_done_of_epoch_, put_session_,
      delete_session_, put_replica_, delete_replica_, put_slot_, put_meta_, put_restored_,
      delete_restored_, clear_leases_, clear_returned_, clear_quarantined_, clear_done_,
      put_result_, clear_results_;
};

}  // namespace edl::master
