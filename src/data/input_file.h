#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace edl::data {

// Two stamps of a path that differ mean that the file has changed.
struct FileStamp {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970

  bool operator==(const FileStamp&) const = default;
};

// NotFound: there is no such file. InvalidArgument: it is not a regular file.
Result<FileStamp> StampOf(const std::string& path);

// A regular file that is read and must not change meanwhile.
//
// Thread-safe.
class InputFile {
 public:
  // Fails like StampOf, or with PermissionDenied.
  static Result<InputFile> Open(std::string path);

  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  uint64_t size() const { return stamp_.size; }

  // Reads exactly `bytes` bytes. FailedPrecondition: the file has become shorter.
  Status ReadAt(uint64_t offset, char* to, size_t bytes) const;

  // FailedPrecondition: the path has another content than the file that was opened. NotFound: the
  // path was removed.
  Status CheckUnchanged() const;

  // The message is "PATH at offset N: ...".
  template <typename... Args>
  Status Damaged(uint64_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    return DataLoss("{} at offset {}: {}", path_, offset,
                    fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  InputFile(std::string path, FileDescriptor file, FileStamp stamp)
      : path_(std::move(path)), file_(std::move(file)), stamp_(stamp) {}

  std::string path_;
  FileDescriptor file_;
  FileStamp stamp_;
};

}  // namespace edl::data
