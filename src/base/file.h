#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// An open file descriptor, closed at the end of its life.
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

// Makes the names in a folder durable: files that were created, renamed or removed in it.
Status SyncFolder(const std::filesystem::path& folder);

// Replaces the file in one step: a reader, or a crash, sees the old content or the new one. When it
// returns Ok the new content survives a loss of power.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content,
                           unsigned mode = 0600);

}  // namespace edl
