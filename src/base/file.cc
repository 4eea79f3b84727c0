#include "base/file.h"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace edl {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

int FileDescriptor::Release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void FileDescriptor::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<std::string> ReadFile(const std::filesystem::path& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Errno("opening {}", path.string());
  return ReadDescriptor(file.get(), path.string());
}

Result<std::string> ReadDescriptor(int fd, const std::string& name) {
  std::string content;
  std::array<char, 65536> buffer;  // NOLINT: filled by read
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("reading {}", name);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(got));
  }
}

namespace {

Status WriteAll(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t wrote = write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Errno("writing {}", path.string());
    content.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

}  // namespace

Status SyncFolder(const std::filesystem::path& folder) {
  const std::string name = folder.empty() ? "." : folder.string();
  const FileDescriptor opened(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return Errno("opening the folder {}", name);
  // Some file systems, such as FUSE ones, cannot sync a folder.
  if (fsync(opened.get()) != 0 && errno != EINVAL) return Errno("fsync of the folder {}", name);
  return Ok();
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content,
                           unsigned mode) {
  std::string temporary = path.string() + ".XXXXXX";
  const FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return Errno("creating a file beside {}", path.string());
  Status status = WriteAll(file.get(), content, path);
  if (status.ok() && fchmod(file.get(), mode) != 0) status = Errno("chmod of {}", temporary);
  if (status.ok() && fsync(file.get()) != 0) status = Errno("fsync of {}", temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = Errno("renaming {} to {}", temporary, path.string());
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncFolder(path.parent_path());
}

}  // namespace edl
