#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// Owns an open file descriptor. The destructor closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release();
  void Close();

 private:
  int fd_ = -1;
};

Result<std::string> ReadFile(const std::filesystem::path& path);

// Reads an open descriptor, such as standard input, to its end. `name` is for error messages.
Result<std::string> ReadDescriptor(int fd, const std::string& name);

// Makes created, renamed and removed names in a folder durable (fsync of the folder).
Status SyncFolder(const std::filesystem::path& folder);

// Replaces the file atomically: a reader sees either the old or the new content, also after a
// crash. Ok means that the new content survives a power failure.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content,
                           unsigned mode = 0600);

}  // namespace edl
