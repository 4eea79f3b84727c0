#include "data/input_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace edl::data {
namespace {

Result<FileStamp> StampFrom(const struct stat& found, const std::string& path) {
  if (!S_ISREG(found.st_mode)) {
    return InvalidArgument("{} is {}, not a file with records", path,
                           S_ISDIR(found.st_mode) ? "a directory" : "a special file");
  }
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return FileStamp{.size = static_cast<uint64_t>(found.st_size),
                   .modified_ns = found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec};
}

}  // namespace

Result<FileStamp> StampOf(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return Errno("reading the record file {}", path);
  return StampFrom(found, path);
}

Result<InputFile> InputFile::Open(std::string path) {
  // O_NONBLOCK: opening a named pipe would wait for its writer.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return Errno("opening the record file {}", path);
  struct stat found = {};
  if (fstat(file.get(), &found) != 0) return Errno("fstat of {}", path);
  EDL_ASSIGN_OR_RETURN(const FileStamp stamp, StampFrom(found, path));
  return InputFile(std::move(path), std::move(file), stamp);
}

Status InputFile::ReadAt(uint64_t offset, char* to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = pread(file_.get(), to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("reading {} at offset {}", path_, offset);
    if (got == 0) {
      return FailedPrecondition(
          "{} ends at offset {}, and had {} bytes when it was opened: it was changed; open it "
          "again",
          path_, offset, stamp_.size);
    }
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return Ok();
}

Status InputFile::CheckUnchanged() const {
  const Result<FileStamp> now = StampOf(path_);
  if (!now.ok()) {
    return Status(now.status().code(),
                  fmt::format("{} was removed or replaced after it was opened: {}", path_,
                              now.status().message()));
  }
  if (*now == stamp_) return Ok();
  return FailedPrecondition(
      "{} was changed after it was opened: it had {} bytes and has {}; open it again", path_,
      stamp_.size, now->size);
}

}  // namespace edl::data
