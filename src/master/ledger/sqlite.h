#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace edl::master {

// A prepared statement, bound, run and read by position. Confined to its database's thread.
class Statement {
 public:
  Statement() = default;
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;

  // Why it could not be prepared: DataLoss where the database is damaged. Run and Next then return
  // this too.
  const Status& prepared() const { return prepared_; }

  // Runs a statement that returns no rows.
  template <typename... Args>
  Status Run(const Args&... args) {
    int place = 0;
    (Bind(++place, args), ...);
    return Finish();
  }

  // Starts a query; then `while (*Next())` and the columns from 0. A query that was read to its
  // end is ready for the next Start.
  template <typename... Args>
  void Start(const Args&... args) {
    int place = 0;
    (Bind(++place, args), ...);
  }
  Result<bool> Next();
  int64_t Int(int column) const;
  uint64_t Number(int column) const { return static_cast<uint64_t>(Int(column)); }
  double Real(int column) const;
  std::string Text(int column) const;

 private:
  friend class Database;
  void Bind(int place, int64_t value);
  void Bind(int place, uint64_t value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, int value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, uint32_t value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, bool value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, double value);
  void Bind(int place, std::string_view value);
  void Bind(int place, const std::string& value) { Bind(place, std::string_view(value)); }
  void Bind(int place, const char* value) { Bind(place, std::string_view(value)); }
  Status Finish();

  sqlite3* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  Status prepared_;
};

// One SQLite database. Confined: call it on the thread that opened it.
class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  // ":memory:" for one that lives only as long as this object.
  static Result<Database> Open(const std::string& path, Mode mode);
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;

  // A copy in memory of the database at `path`, which stays as it is. NotFound: there is none.
  // Unavailable: another process has it locked.
  static Result<Database> Copy(const std::string& path);

  // Runs statements without parameters.
  Status Execute(const std::string& sql);
  Statement Prepare(std::string_view sql);
  bool in_transaction() const;
  // The last call that failed could not write to the disk: there is no room, or it is away. The
  // transaction was not committed, and may be tried again.
  bool disk_was_full() const;

 private:
  explicit Database(sqlite3* database) : database_(database) {}
  sqlite3* database_ = nullptr;
};

}  // namespace edl::master
