#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/file.h"
#include "base/status.h"

namespace edl::backend::local {

// Output of one replica, as files that do not grow without limit. NAME.log is what people read;
// once it holds exactly `limit` bytes it becomes NAME.log.N, the N-th full one, and N-1 is removed.
// Since all full files are of one size, the first offset of NAME.log is N times that size: readers
// need nothing but the folder.
//
// Confined to the process that writes; any process may read.
class LogFile {
 public:
  // Goes on where an earlier writer ended. REQUIRES: limit > 0.
  static Result<LogFile> Open(const std::filesystem::path& dir, const std::string& name,
                              int64_t limit);

  // Output that cannot be written (a full disk) is lost rather than waited for: a replica never
  // stands still for its log. A line says so as soon as something can be written again.
  void Append(std::string_view bytes);

 private:
  LogFile(std::filesystem::path path, int64_t limit) : path_(std::move(path)), limit_(limit) {}
  Status Reopen();
  Status Rotate();
  Status Write(std::string_view bytes);

  std::filesystem::path path_;
  int64_t limit_;
  int64_t full_files_ = 0;  // how many there have been
  int64_t size_ = 0;
  int64_t lost_bytes_ = 0;
  FileDescriptor file_;
};

// See Backend::Logs. NotFound: nobody ever wrote that log.
Result<LogPiece> ReadLog(const std::filesystem::path& dir, const std::string& name, int64_t offset,
                         int64_t at_most);

}  // namespace edl::backend::local
