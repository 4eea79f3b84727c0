#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace edl::master {

// Bytes that are stored as they are, and not as text.
struct Blob {
  std::string bytes;
};

// A prepared statement. Parameters and columns are numbered by position.
//
// Confined to the thread of its database.
class Statement {
 public:
  Statement() = default;
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;

  // Ok, or why SQLite could not prepare the statement. DataLoss: the database is damaged. Run and
  // Next then return the same error.
  const Status& prepared() const { return prepared_; }

  // Runs a statement that returns no rows.
  template <typename... Args>
  Status Run(const Args&... args) {
    int place = 0;
    (Bind(++place, args), ...);
    return Finish();
  }

  // Starts a query. Then call Next for each row; after it returned false, Start may be called
  // again.
  template <typename... Args>
  void Start(const Args&... args) {
    int place = 0;
    (Bind(++place, args), ...);
  }
  // False: there are no more rows.
  Result<bool> Next();
  // A column of the current row, counted from 0.
  int64_t Int(int column) const;
  uint64_t Number(int column) const { return static_cast<uint64_t>(Int(column)); }
  double Real(int column) const;
  std::string Text(int column) const;
  std::string Bytes(int column) const;  // of a blob

 private:
  friend class Database;
  void Bind(int place, int64_t value);
  void Bind(int place, uint64_t value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, int value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, uint32_t value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, bool value) { Bind(place, static_cast<int64_t>(value)); }
  void Bind(int place, double value);
  void Bind(int place, std::string_view value);
  void Bind(int place, const Blob& value);
  void Bind(int place, const std::string& value) { Bind(place, std::string_view(value)); }
  void Bind(int place, const char* value) { Bind(place, std::string_view(value)); }
  Status Finish();

  sqlite3* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  Status prepared_;
};

// One SQLite database.
//
// Confined: call it on the thread that opened it.
class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  // ":memory:": a database that exists only as long as this object.
  static Result<Database> Open(const std::string& path, Mode mode);
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;

  // Copies the database at `path` into memory and does not change the file. NotFound: there is no
  // file. Unavailable: another process has locked it.
  static Result<Database> Copy(const std::string& path);

  // Runs statements that have no parameters.
  Status Execute(const std::string& sql);
  Statement Prepare(std::string_view sql);
  bool in_transaction() const;
  // The last failed call could not write, because the disk is full or missing. The transaction was
  // not committed and may be tried again.
  bool disk_was_full() const;

 private:
  explicit Database(sqlite3* database) : database_(database) {}
  sqlite3* database_ = nullptr;
};

}  // namespace edl::master
