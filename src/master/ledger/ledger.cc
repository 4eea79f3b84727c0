#include "master/ledger/ledger.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/log.h"

namespace edl::master {
namespace {

constexpr const char* kSchema = R"(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE datasets (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER, batch_size INTEGER,
  batches_per_shard INTEGER, epochs INTEGER, ordering INTEGER, task_type TEXT, seed INTEGER,
  generation INTEGER, epoch INTEGER, next INTEGER, told_finished INTEGER, leftover_at INTEGER,
  records_done INTEGER, shards_done INTEGER, shards_repeated INTEGER, records_not_trained INTEGER,
  records_again INTEGER, order_generation INTEGER, closed INTEGER);
CREATE TABLE leases (
  lease INTEGER PRIMARY KEY, dataset INTEGER, epoch INTEGER, ordinal INTEGER, holder INTEGER,
  number INTEGER, task INTEGER, failures INTEGER, counted INTEGER);
CREATE TABLE returned (
  dataset INTEGER, epoch INTEGER, ordinal INTEGER, failures INTEGER, failed_by TEXT,
  counted INTEGER,
  PRIMARY KEY (dataset, epoch, ordinal)) WITHOUT ROWID;
CREATE TABLE quarantined (
  dataset INTEGER, epoch INTEGER, ordinal INTEGER, error TEXT,
  PRIMARY KEY (dataset, epoch, ordinal)) WITHOUT ROWID;
CREATE TABLE done (
  dataset INTEGER, epoch INTEGER, first INTEGER, last INTEGER,
  PRIMARY KEY (dataset, epoch, first)) WITHOUT ROWID;
CREATE TABLE restored (
  dataset INTEGER, epoch INTEGER, first INTEGER, last INTEGER,
  PRIMARY KEY (dataset, epoch, first)) WITHOUT ROWID;
CREATE TABLE results (
  dataset INTEGER, generation INTEGER, ordinal INTEGER, result BLOB,
  PRIMARY KEY (dataset, generation, ordinal));
CREATE TABLE sessions (
  incarnation INTEGER PRIMARY KEY, role TEXT, replica INTEGER, compat_api INTEGER, process TEXT,
  answers TEXT);
CREATE TABLE replicas (
  name TEXT PRIMARY KEY, role TEXT, id INTEGER, idx INTEGER, state INTEGER, joined INTEGER,
  process_id INTEGER, reason TEXT) WITHOUT ROWID;
CREATE TABLE slots (
  role TEXT, idx INTEGER, wanted INTEGER, succeeded INTEGER, failures INTEGER, idle_lives INTEGER,
  memory_bytes INTEGER, PRIMARY KEY (role, idx)) WITHOUT ROWID;
)";

// A copy of a value that owns its text.
template <typename Value>
auto Kept(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    return std::string(std::string_view(value));
  } else {
    return value;
  }
}

job::Role RoleOf(const std::string& name) {
  return job::RoleFromName(name).value_or(job::Role::kWorker);
}

// All rows of a query. `make` reads the current row of the statement.
template <typename Make>
auto ReadAll(Database& database, const std::string& sql, const Make& make)
    -> Result<std::vector<decltype(make(std::declval<const Statement&>()))>> {
  std::vector<decltype(make(std::declval<const Statement&>()))> rows;
  Statement query = database.Prepare(sql);
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) return rows;
    rows.push_back(make(query));
  }
}

}  // namespace

Result<Ledger> Ledger::Open(const std::string& path) {
  EDL_ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kReadWrite));
  Ledger ledger(std::move(database));
  // Exclusive locking needs no shared memory, so the ledger may be on a file system without mmap,
  // and two masters can never write to one ledger.
  EDL_RETURN_IF_ERROR(ledger.database_.Execute("PRAGMA locking_mode=EXCLUSIVE"));
  // A commit changes a few rows in a few tables, so small pages make a small log.
  EDL_RETURN_IF_ERROR(ledger.database_.Execute("PRAGMA page_size=1024"));
  EDL_RETURN_IF_ERROR(ledger.database_.Execute("PRAGMA journal_mode=WAL"));
  // A checkpoint of the log costs milliseconds in which no call is answered, so it is rare: after 8
  // MB of log, which a restarted master reads in a few hundredths of a second.
  EDL_RETURN_IF_ERROR(ledger.database_.Execute("PRAGMA wal_autocheckpoint=8000"));
  EDL_RETURN_IF_ERROR(ledger.database_.Execute("PRAGMA synchronous=FULL"));
  EDL_RETURN_IF_ERROR(ledger.CreateOrCheckSchema());
  EDL_RETURN_IF_ERROR(ledger.PrepareStatements());
  return ledger;
}

Result<Ledger> Ledger::ReadCopy(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return NotFound("there is no ledger at {}", path);
  if (size == 0) return DataLoss("{} is empty", path);
  EDL_ASSIGN_OR_RETURN(Database copy, Database::Copy(path));
  Ledger ledger(std::move(copy));
  EDL_ASSIGN_OR_RETURN(const int64_t version, ledger.SchemaVersion());
  if (version == 0) return DataLoss("{} does not contain a ledger", path);
  EDL_RETURN_IF_ERROR(ledger.CreateOrCheckSchema());
  return ledger;
}

Result<int64_t> Ledger::SchemaVersion() {
  Statement query = database_.Prepare("PRAGMA user_version");
  query.Start();
  EDL_ASSIGN_OR_RETURN(const bool found, query.Next());
  return found ? query.Int(0) : 0;
}

Status Ledger::CreateOrCheckSchema() {
  EDL_ASSIGN_OR_RETURN(const int64_t version, SchemaVersion());
  if (version == kSchemaVersion) return Ok();
  if (version != 0) {
    return FailedPrecondition(
        "the ledger has schema version {}, and this program reads version {}: it was written by {} "
        "elasticdl; use that version, or give the job another name",
        version, kSchemaVersion, version > kSchemaVersion ? "a newer" : "an older");
  }
  EDL_RETURN_IF_ERROR(database_.Execute("BEGIN IMMEDIATE"));
  EDL_RETURN_IF_ERROR(database_.Execute(kSchema));
  EDL_RETURN_IF_ERROR(database_.Execute(TelemetryTable::kSchema));
  EDL_RETURN_IF_ERROR(database_.Execute(fmt::format("PRAGMA user_version={}", kSchemaVersion)));
  return database_.Execute("COMMIT");
}

Status Ledger::PrepareStatements() {
  telemetry_.Prepare(database_);
  // Not OR REPLACE, which would also write the index of names each time.
  put_dataset_ = database_.Prepare(
      "INSERT INTO datasets VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO "
      "UPDATE "
      "SET size=excluded.size, batch_size=excluded.batch_size, "
      "batches_per_shard=excluded.batches_per_shard, epochs=excluded.epochs, "
      "ordering=excluded.ordering, task_type=excluded.task_type, seed=excluded.seed, "
      "generation=excluded.generation, epoch=excluded.epoch, next=excluded.next, "
      "told_finished=excluded.told_finished, leftover_at=excluded.leftover_at, "
      "records_done=excluded.records_done, shards_done=excluded.shards_done, "
      "shards_repeated=excluded.shards_repeated, "
      "records_not_trained=excluded.records_not_trained, "
      "records_again=excluded.records_again, order_generation=excluded.order_generation, "
      "closed=excluded.closed");
  put_lease_ = database_.Prepare("INSERT OR REPLACE INTO leases VALUES (?,?,?,?,?,?,?,?,?)");
  delete_lease_ = database_.Prepare("DELETE FROM leases WHERE lease=?");
  put_returned_ = database_.Prepare("INSERT OR REPLACE INTO returned VALUES (?,?,?,?,?,?)");
  delete_returned_ =
      database_.Prepare("DELETE FROM returned WHERE dataset=? AND epoch=? AND ordinal=?");
  put_quarantined_ = database_.Prepare("INSERT OR REPLACE INTO quarantined VALUES (?,?,?,?)");
  put_done_ = database_.Prepare("INSERT OR REPLACE INTO done VALUES (?,?,?,?)");
  delete_done_ = database_.Prepare("DELETE FROM done WHERE dataset=? AND epoch=? AND first=?");
  delete_done_of_epoch_ = database_.Prepare("DELETE FROM done WHERE dataset=? AND epoch=?");
  put_session_ = database_.Prepare("INSERT OR REPLACE INTO sessions VALUES (?,?,?,?,?,?)");
  delete_session_ = database_.Prepare("DELETE FROM sessions WHERE incarnation=?");
  delete_replica_ = database_.Prepare("DELETE FROM replicas WHERE name=?");
  put_replica_ = database_.Prepare("INSERT OR REPLACE INTO replicas VALUES (?,?,?,?,?,?,?,?)");
  put_slot_ = database_.Prepare("INSERT OR REPLACE INTO slots VALUES (?,?,?,?,?,?,?)");
  put_meta_ = database_.Prepare("INSERT OR REPLACE INTO meta VALUES (?,?)");
  put_restored_ = database_.Prepare("INSERT OR REPLACE INTO restored VALUES (?,?,?,?)");
  delete_restored_ = database_.Prepare("DELETE FROM restored WHERE dataset=?");
  clear_leases_ = database_.Prepare("DELETE FROM leases WHERE dataset=?");
  clear_returned_ = database_.Prepare("DELETE FROM returned WHERE dataset=?");
  clear_quarantined_ = database_.Prepare("DELETE FROM quarantined WHERE dataset=?");
  clear_done_ = database_.Prepare("DELETE FROM done WHERE dataset=?");
  put_result_ = database_.Prepare("INSERT OR REPLACE INTO results VALUES (?,?,?,?)");
  clear_results_ = database_.Prepare("DELETE FROM results WHERE dataset=?");
  for (const Statement* statement :
       {&put_dataset_,          &put_lease_,       &delete_lease_,   &put_returned_,
        &delete_returned_,      &put_quarantined_, &put_done_,       &delete_done_,
        &delete_done_of_epoch_, &put_session_,     &delete_session_, &put_replica_,
        &delete_replica_,       &put_slot_,        &put_meta_,       &put_restored_,
        &delete_restored_,      &clear_leases_,    &clear_returned_, &clear_quarantined_,
        &clear_done_,           &put_result_,      &clear_results_}) {
    EDL_RETURN_IF_ERROR(statement->prepared());
  }
  return Ok();
}

template <typename... Args>
void Ledger::Write(Statement Ledger::*statement, const Args&... args) {
  // Text is copied, because a write may be repeated after the caller's row has been destroyed.
  uncommitted_.emplace_back([statement, ... kept = Kept(args)](Ledger& ledger) {
    return (ledger.*statement).Run(kept...);
  });
  if (failed_.ok()) Run(uncommitted_.back());
}

void Ledger::Run(const std::function<Status(Ledger&)>& write) {
  if (!database_.in_transaction()) failed_ = database_.Execute("BEGIN IMMEDIATE");
  if (failed_.ok()) failed_ = write(*this);
  if (!failed_.ok()) is_full_ = database_.disk_was_full();
}

void Ledger::Put(const DatasetRow& row) {
  Write(&Ledger::put_dataset_, row.id.value(), row.spec.name, row.spec.size, row.spec.batch_size,
        row.spec.batches_per_shard, row.spec.epochs, static_cast<int>(row.spec.order),
        NameOf(row.spec.task_type), row.seed, row.generation, row.epoch, row.next,
        row.told_finished, row.leftover_at, row.records_done, row.shards_done, row.shards_repeated,
        row.records_not_trained, row.records_again, row.order_generation, row.closed);
}

void Ledger::Put(const LeaseRow& row) {
  Write(&Ledger::put_lease_, row.lease.value(), row.dataset.value(), row.key.epoch, row.key.ordinal,
        row.holder.value(), row.number, row.task, row.failures, row.counted);
}

void Ledger::Delete(LeaseId lease) { Write(&Ledger::delete_lease_, lease.value()); }

void Ledger::Put(const ReturnedRow& row) {
  Write(&Ledger::put_returned_, row.dataset.value(), row.key.epoch, row.key.ordinal, row.failures,
        row.failed_by, row.counted);
}

void Ledger::DeleteReturned(DatasetId dataset, ShardPosition key) {
  Write(&Ledger::delete_returned_, dataset.value(), key.epoch, key.ordinal);
}

void Ledger::Put(const QuarantinedRow& row) {
  Write(&Ledger::put_quarantined_, row.dataset.value(), row.key.epoch, row.key.ordinal, row.error);
}

void Ledger::Put(const DoneRow& row) {
  Write(&Ledger::put_done_, row.dataset.value(), row.epoch, row.range.first, row.range.last);
}

void Ledger::DeleteDone(DatasetId dataset, int64_t epoch, uint64_t first) {
  Write(&Ledger::delete_done_, dataset.value(), epoch, first);
}

void Ledger::DeleteDoneOfEpoch(DatasetId dataset, int64_t epoch) {
  Write(&Ledger::delete_done_of_epoch_, dataset.value(), epoch);
}

void Ledger::PutRestored(DatasetId dataset, const std::vector<DoneRow>& rows) {
  Write(&Ledger::delete_restored_, dataset.value());
  for (const DoneRow& row : rows) {
    Write(&Ledger::put_restored_, dataset.value(), row.epoch, row.range.first, row.range.last);
  }
}

void Ledger::DeleteQuarantined(DatasetId dataset) {
  Write(&Ledger::clear_quarantined_, dataset.value());
}

void Ledger::Put(const ResultRow& row) {
  Write(&Ledger::put_result_, row.dataset.value(), row.generation, row.ordinal, Blob{row.result});
}

void Ledger::Clear(DatasetId dataset) {
  for (const auto statement :
       {&Ledger::clear_leases_, &Ledger::clear_returned_, &Ledger::clear_quarantined_,
        &Ledger::clear_done_, &Ledger::clear_results_}) {
    Write(statement, dataset.value());
  }
}

void Ledger::Put(const SessionRow& row) {
  Write(&Ledger::put_session_, row.incarnation.value(), job::NameOf(row.replica.role),
        row.replica.id, row.compat_api, row.process, row.answers);
}

void Ledger::Delete(Incarnation incarnation) {
  Write(&Ledger::delete_session_, incarnation.value());
}

void Ledger::Put(const ReplicaRow& row) {
  Write(&Ledger::put_replica_, row.name, job::NameOf(row.replica.role), row.replica.id, row.index,
        static_cast<int>(row.state), row.joined, row.process_id, row.reason);
}

void Ledger::DeleteReplica(const std::string& name) { Write(&Ledger::delete_replica_, name); }

void Ledger::Put(const SlotRow& row) {
  Write(&Ledger::put_slot_, job::NameOf(row.role), row.index, row.wanted, row.succeeded,
        row.failures, row.idle_lives, row.memory_bytes);
}

void Ledger::PutMeta(const std::string& key, const std::string& value) {
  Write(&Ledger::put_meta_, key, value);
}

Result<std::vector<DatasetRow>> Ledger::Datasets() {
  return ReadAll(database_, "SELECT * FROM datasets ORDER BY id", [](const Statement& query) {
    return DatasetRow{
        .id = DatasetId(query.Int(0)),
        .spec = {.name = query.Text(1),
                 .size = query.Int(2),
                 .batch_size = query.Int(3),
                 .batches_per_shard = query.Int(4),
                 .epochs = query.Int(5),
                 .order = static_cast<Order>(query.Int(6)),
                 .task_type = TaskTypeFromName(query.Text(7)).value_or(TaskType::kTraining)},
        .seed = query.Number(8),
        .generation = static_cast<uint32_t>(query.Int(9)),
        .epoch = query.Int(10),
        .next = query.Number(11),
        .told_finished = query.Int(12) != 0,
        .leftover_at = query.Int(13),
        .records_done = query.Int(14),
        .shards_done = query.Int(15),
        .shards_repeated = query.Int(16),
        .records_not_trained = query.Int(17),
        .records_again = query.Int(18),
        .order_generation = static_cast<uint32_t>(query.Int(19)),
        .closed = query.Int(20) != 0};
  });
}

Result<std::vector<LeaseRow>> Ledger::Leases() {
  return ReadAll(database_, "SELECT * FROM leases ORDER BY lease", [](const Statement& query) {
    return LeaseRow{.lease = LeaseId(query.Number(0)),
                    .dataset = DatasetId(query.Int(1)),
                    .key = {.epoch = query.Int(2), .ordinal = query.Number(3)},
                    .holder = Incarnation(query.Number(4)),
                    .number = query.Number(5),
                    .task = static_cast<int32_t>(query.Int(6)),
                    .failures = static_cast<int>(query.Int(7)),
                    .counted = query.Int(8) != 0};
  });
}

Result<std::vector<ReturnedRow>> Ledger::Returned() {
  return ReadAll(database_, "SELECT * FROM returned", [](const Statement& query) {
    return ReturnedRow{.dataset = DatasetId(query.Int(0)),
                       .key = {.epoch = query.Int(1), .ordinal = query.Number(2)},
                       .failures = static_cast<int>(query.Int(3)),
                       .failed_by = query.Text(4),
                       .counted = query.Int(5) != 0};
  });
}

Result<std::vector<QuarantinedRow>> Ledger::Quarantined() {
  return ReadAll(database_, "SELECT * FROM quarantined", [](const Statement& query) {
    return QuarantinedRow{.dataset = DatasetId(query.Int(0)),
                          .key = {.epoch = query.Int(1), .ordinal = query.Number(2)},
                          .error = query.Text(3)};
  });
}

Result<std::vector<DoneRow>> Ledger::Ranges(const char* table) {
  return ReadAll(database_, fmt::format("SELECT * FROM {}", table), [](const Statement& query) {
    return DoneRow{.dataset = DatasetId(query.Int(0)),
                   .epoch = query.Int(1),
                   .range = {.first = query.Number(2), .last = query.Number(3)}};
  });
}

Result<std::vector<DoneRow>> Ledger::Done() { return Ranges("done"); }
Result<std::vector<DoneRow>> Ledger::Restored() { return Ranges("restored"); }

Result<std::vector<SessionRow>> Ledger::Sessions() {
  return ReadAll(database_, "SELECT * FROM sessions ORDER BY incarnation",
                 [](const Statement& query) {
                   return SessionRow{.incarnation = Incarnation(query.Number(0)),
                                     .replica = {.role = RoleOf(query.Text(1)), .id = query.Int(2)},
                                     .compat_api = query.Int(3) != 0,
                                     .process = query.Text(4),
                                     .answers = query.Text(5)};
                 });
}

Result<std::vector<ReplicaRow>> Ledger::Replicas() {
  return ReadAll(database_, "SELECT * FROM replicas ORDER BY role, id", [](const Statement& query) {
    return ReplicaRow{.name = query.Text(0),
                      .replica = {.role = RoleOf(query.Text(1)), .id = query.Int(2)},
                      .index = static_cast<int>(query.Int(3)),
                      .state = static_cast<job::ReplicaState>(query.Int(4)),
                      .joined = query.Int(5) != 0,
                      .process_id = query.Int(6),
                      .reason = query.Text(7)};
  });
}

Result<std::vector<SlotRow>> Ledger::Slots() {
  return ReadAll(database_, "SELECT * FROM slots", [](const Statement& query) {
    return SlotRow{.role = RoleOf(query.Text(0)),
                   .index = static_cast<int>(query.Int(1)),
                   .wanted = query.Int(2) != 0,
                   .succeeded = query.Int(3) != 0,
                   .failures = static_cast<int>(query.Int(4)),
                   .idle_lives = static_cast<int>(query.Int(5)),
                   .memory_bytes = query.Int(6)};
  });
}

Result<ResultPage> Ledger::Results(DatasetId dataset, uint32_t generation, uint64_t first,
                                   size_t most) {
  ResultPage page;
  size_t bytes = 0;
  Statement query = database_.Prepare(
      "SELECT ordinal, result FROM results WHERE dataset=? AND generation=? AND ordinal>=? "
      "ORDER BY ordinal");
  query.Start(dataset.value(), generation, first);
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) return page;
    ResultRow row{.dataset = dataset,
                  .generation = generation,
                  .ordinal = query.Number(0),
                  .result = query.Bytes(1)};
    bytes += row.result.size();
    page.more = bytes > most && !page.rows.empty();
    if (page.more) return page;
    page.rows.push_back(std::move(row));
  }
}

Result<std::vector<Ledger::ResultSize>> Ledger::ResultSizes() {
  return ReadAll(
      database_, "SELECT dataset, ordinal, length(result) FROM results ORDER BY dataset, ordinal",
      [](const Statement& query) {
        return ResultSize{
            .dataset = DatasetId(query.Int(0)), .ordinal = query.Number(1), .bytes = query.Int(2)};
      });
}

Result<std::map<std::string, std::string>> Ledger::Meta() {
  EDL_ASSIGN_OR_RETURN(const auto rows, ReadAll(database_, "SELECT key, value FROM meta",
                                                [](const Statement& query) {
                                                  return std::pair(query.Text(0), query.Text(1));
                                                }));
  return std::map<std::string, std::string>(rows.begin(), rows.end());
}

void Ledger::Repeat() {
  if (database_.in_transaction()) (void)database_.Execute("ROLLBACK");
  is_full_ = false;
  failed_ = Ok();
  for (const auto& write : uncommitted_) {
    Run(write);
    if (!failed_.ok()) return;
  }
}

bool Ledger::WriteTelemetry() {
  if (!telemetry_.HasRows()) return false;
  Status written = Ok();
  if (!database_.in_transaction()) written = database_.Execute("BEGIN IMMEDIATE");
  if (written.ok()) written = telemetry_.Write();
  if (!written.ok()) {
    telemetry_.DropRows();
    if (!telemetry_failed_) {
      LOG_WARNING("the curves of the job cannot be stored: {}", written.message());
    }
    Repeat();
  }
  telemetry_failed_ = !written.ok();
  return written.ok();
}

Status Ledger::Commit() {
  // SQLite may have rolled back some or all writes.
  if (is_full_) Repeat();
  const bool has_telemetry = failed_.ok() && WriteTelemetry();
  if (failed_.ok() && database_.in_transaction()) {
    failed_ = database_.Execute("COMMIT");
    if (!failed_.ok() && has_telemetry && database_.disk_was_full()) {
      // There may be room for the rest.
      Repeat();
      if (failed_.ok() && database_.in_transaction()) failed_ = database_.Execute("COMMIT");
    }
    if (!failed_.ok()) is_full_ = database_.disk_was_full();
  }
  if (failed_.ok()) uncommitted_.clear();
  return failed_;
}

Status Ledger::Checkpoint() { return database_.Execute("PRAGMA wal_checkpoint(TRUNCATE)"); }

void Ledger::Rollback() {
  // An error does not matter: the caller drops everything that is not committed.
  if (database_.in_transaction()) (void)database_.Execute("ROLLBACK");
  uncommitted_.clear();
  telemetry_.DropRows();
  is_full_ = false;
  failed_ = Ok();
}

}  // namespace edl::master
