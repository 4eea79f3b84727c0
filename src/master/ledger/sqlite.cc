#include "master/ledger/sqlite.h"

#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

namespace edl::master {
namespace {

// How long to wait for the lock of a process that reads.
constexpr int kBusyMillis = 1000;

Status Failure(sqlite3* database, int code) {
  const std::string what = sqlite3_errmsg(database);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ResourceExhausted("the disk is full ({})", what);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return PermissionDenied("{}", what);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Unavailable("another process has locked it ({})", what);
    case SQLITE_CANTOPEN:
      return NotFound("{}", what);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DataLoss("{}", what);
    case SQLITE_IOERR:
      return ResourceExhausted("the disk cannot be read or written ({})", what);
    default:
      return Internal("{}", what);
  }
}

}  // namespace

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      prepared_(std::move(other.prepared_)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(database_, other.database_);
  std::swap(statement_, other.statement_);
  std::swap(prepared_, other.prepared_);
  return *this;
}

// Binding to a statement that was not prepared does nothing: SQLite accepts null.
void Statement::Bind(int place, int64_t value) { sqlite3_bind_int64(statement_, place, value); }
void Statement::Bind(int place, double value) { sqlite3_bind_double(statement_, place, value); }
void Statement::Bind(int place, std::string_view value) {
  sqlite3_bind_text(statement_, place, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);  // NOLINT
}
void Statement::Bind(int place, const Blob& value) {
  sqlite3_bind_blob64(statement_, place, value.bytes.data(), value.bytes.size(),
                      SQLITE_TRANSIENT);  // NOLINT
}

Status Statement::Finish() {
  if (!prepared_.ok()) return prepared_;
  const int code = sqlite3_step(statement_);
  Status status = code == SQLITE_DONE || code == SQLITE_ROW ? Ok() : Failure(database_, code);
  sqlite3_reset(statement_);
  return status;
}

Result<bool> Statement::Next() {
  if (!prepared_.ok()) return prepared_;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  Status status = code == SQLITE_DONE ? Ok() : Failure(database_, code);
  sqlite3_reset(statement_);
  if (!status.ok()) return status;
  return false;
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr
             ? std::string()
             : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}
std::string Statement::Bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes == nullptr
             ? std::string()
             : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

Result<Database> Database::Open(const std::string& path, Mode mode) {
  sqlite3* raw = nullptr;
  const int flags =
      mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) {
    return Failure(raw, code).Within(fmt::format("opening {} as user {}", path, getuid()));
  }
  sqlite3_busy_timeout(raw, kBusyMillis);
  return database;
}

Result<Database> Database::Copy(const std::string& path) {
  EDL_ASSIGN_OR_RETURN(const Database source, Open(path, Mode::kReadOnly));
  EDL_ASSIGN_OR_RETURN(Database copy, Open(":memory:", Mode::kReadWrite));
  sqlite3_backup* backup = sqlite3_backup_init(copy.database_, "main", source.database_, "main");
  if (backup == nullptr) return Failure(copy.database_, sqlite3_errcode(copy.database_));
  const int stepped = sqlite3_backup_step(backup, -1);
  const int finished = sqlite3_backup_finish(backup);
  if (stepped != SQLITE_DONE) {
    return Failure(copy.database_, finished != SQLITE_OK ? finished : stepped)
        .Within("reading " + path);
  }
  return copy;
}

Database::~Database() { sqlite3_close_v2(database_); }

Database::Database(Database&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(database_, other.database_);
  return *this;
}

Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Ok() : Failure(database_, code);
}

Statement Database::Prepare(std::string_view sql) {
  Statement statement;
  statement.database_ = database_;
  const int code = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement.statement_, nullptr);
  if (code != SQLITE_OK) statement.prepared_ = Failure(database_, code);
  return statement;
}

bool Database::disk_was_full() const {
  const int code = sqlite3_extended_errcode(database_);
  // An exceeded quota or limit of the process is IOERR_WRITE. It is safe to write the same pages
  // again, but not after a failed fsync, when the state of the file is unknown.
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE;
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(database_) == 0; }

}  // namespace edl::master
