#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/file.h"
#include "base/status.h"

namespace edl::backend::local {

// The output of one replica, in files of bounded size. NAME.log is the current file; when it holds
// exactly `limit` bytes it is renamed to NAME.log.N, the N-th full file, and N-1 is removed.
// Because all full files have the same size, the first offset of NAME.log is N times that size, and
// readers need only the folder.
//
// Confined to the writing process; any process may read.
class LogFile {
 public:
  // Continues the files of an earlier writer. REQUIRES: limit > 0.
  static Result<LogFile> Open(const std::filesystem::path& dir, const std::string& name,
                              int64_t limit);

  // Never blocks a replica: drops output that cannot be written (a full disk), and writes a line
  // about it as soon as possible.
  void Append(std::string_view bytes);

 private:
  LogFile(std::filesystem::path path, int64_t limit) : path_(std::move(path)), limit_(limit) {}
  Status Reopen();
  Status Rotate();
  Status Write(std::string_view bytes);

  std::filesystem::path path_;
  int64_t limit_;
  int64_t full_files_ = 0;  // number so far
  int64_t size_ = 0;
  int64_t lost_bytes_ = 0;
  FileDescriptor file_;
};

// See Backend::Logs. NotFound: the log does not exist.
Result<LogPiece> ReadLog(const std::filesystem::path& dir, const std::string& name, int64_t offset,
                         int64_t at_most);

}  // namespace edl::backend::local
