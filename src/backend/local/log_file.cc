#include "backend/local/log_file.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace edl::backend::local {
namespace {

namespace fs = std::filesystem;

fs::path FullFile(const fs::path& path, int64_t number) {
  return fmt::format("{}.{}", path.string(), number);
}

// The highest N of NAME.log.N; 0 if there is none.
Result<int64_t> NewestFullFile(const fs::path& path) {
  const std::string prefix = path.filename().string() + ".";
  int64_t newest = 0;
  std::error_code error;
  fs::directory_iterator entry(path.parent_path(), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    int64_t number = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) newest = std::max(newest, number);
  }
  if (error) return StatusFromErrno(error.value(), "listing " + path.parent_path().string());
  return newest;
}

Result<int64_t> SizeOf(int fd, const fs::path& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return Errno("fstat of {}", path.string());
  return static_cast<int64_t>(status.st_size);
}

Status ReadInto(int fd, int64_t from, int64_t count, std::string& text) {
  while (count > 0) {
    const size_t before = text.size();
    text.resize(before + static_cast<size_t>(std::min<int64_t>(count, int64_t{1} << 20)));
    const ssize_t got = pread(fd, text.data() + before, text.size() - before, from);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("reading a log");
    if (got == 0) return Ok();
    from += got;
    count -= got;
  }
  return Ok();
}

// The two files that exist at one moment.
struct Files {
  FileDescriptor full, current;
  int64_t full_size = 0, current_size = 0;
  int64_t full_files = 0;
  int64_t current_start() const { return full_files * full_size; }
  int64_t start() const { return full_files > 0 ? current_start() - full_size : 0; }
  int64_t end() const { return current_start() + current_size; }
};

// nullopt: the log was rotated in the meantime.
Result<std::optional<Files>> OpenFiles(const fs::path& path) {
  Files files;
  EDL_ASSIGN_OR_RETURN(files.full_files, NewestFullFile(path));
  if (files.full_files > 0) {
    const fs::path full = FullFile(path, files.full_files);
    files.full = FileDescriptor(open(full.c_str(), O_RDONLY | O_CLOEXEC));
    if (!files.full.valid()) return std::optional<Files>();
    EDL_ASSIGN_OR_RETURN(files.full_size, SizeOf(files.full.get(), full));
  }
  files.current = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!files.current.valid() && errno != ENOENT) return Errno("opening {}", path.string());
  if (!files.current.valid() && files.full_files == 0) {
    return NotFound("log {} does not exist", path.string());
  }
  if (files.current.valid()) {
    EDL_ASSIGN_OR_RETURN(files.current_size, SizeOf(files.current.get(), path));
  }
  EDL_ASSIGN_OR_RETURN(const int64_t still, NewestFullFile(path));
  if (still != files.full_files) return std::optional<Files>();
  return std::optional<Files>(std::move(files));
}

}  // namespace

Result<LogFile> LogFile::Open(const fs::path& dir, const std::string& name, int64_t limit) {
  CHECK(limit > 0, "log limit {}", limit);
  LogFile log(dir / (name + ".log"), limit);
  EDL_ASSIGN_OR_RETURN(log.full_files_, NewestFullFile(log.path_));
  if (log.full_files_ > 0) {
    // Uses the size of existing files, because all full files must have the same size.
    std::error_code error;
    const auto size = fs::file_size(FullFile(log.path_, log.full_files_), error);
    if (!error && size > 0) log.limit_ = static_cast<int64_t>(size);
  }
  EDL_RETURN_IF_ERROR(log.Reopen());
  return log;
}

Status LogFile::Reopen() {
  file_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file_.valid()) return Errno("opening {}", path_.string());
  EDL_ASSIGN_OR_RETURN(size_, SizeOf(file_.get(), path_));
  return Ok();
}

Status LogFile::Rotate() {
  if (rename(path_.c_str(), FullFile(path_, full_files_ + 1).c_str()) != 0) {
    return Errno("renaming {}", path_.string());
  }
  ++full_files_;
  file_.Close();
  if (full_files_ > 1) unlink(FullFile(path_, full_files_ - 1).c_str());
  return Ok();
}

Status LogFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (file_.valid() && size_ >= limit_) EDL_RETURN_IF_ERROR(Rotate());
    if (!file_.valid()) EDL_RETURN_IF_ERROR(Reopen());
    const int64_t room = std::max<int64_t>(limit_ - size_, 1);
    const size_t count = std::min(bytes.size(), static_cast<size_t>(room));
    const ssize_t wrote = write(file_.get(), bytes.data(), count);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      lost_bytes_ += static_cast<int64_t>(bytes.size());
      return Errno("writing {}", path_.string());
    }
    size_ += wrote;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

void LogFile::Append(std::string_view bytes) {
  if (lost_bytes_ > 0) {
    const int64_t lost = lost_bytes_;
    lost_bytes_ = 0;
    const std::string note =
        fmt::format("\n[elasticdl: {} bytes of output were lost here]\n", lost);
    if (!Write(note).ok()) {
      lost_bytes_ = lost + static_cast<int64_t>(bytes.size());
      return;
    }
  }
  const int64_t before = lost_bytes_;
  if (!Write(bytes).ok() && lost_bytes_ == before) {
    lost_bytes_ += static_cast<int64_t>(bytes.size());
  }
}

Result<LogPiece> ReadLog(const fs::path& dir, const std::string& name, int64_t offset,
                         int64_t at_most) {
  const fs::path path = dir / (name + ".log");
  std::optional<Files> files;
  while (!files.has_value()) {
    EDL_ASSIGN_OR_RETURN(files, OpenFiles(path));
  }
  const int64_t end = files->end();
  const int64_t from =
      std::clamp(offset < 0 ? end + std::max(offset, -end) : offset, files->start(), end);
  const int64_t until = from + std::clamp<int64_t>(at_most, 0, end - from);
  LogPiece piece;
  const int64_t border = files->current_start();
  if (from < border) {
    EDL_RETURN_IF_ERROR(ReadInto(files->full.get(), from - files->start(),
                                 std::min(until, border) - from, piece.text));
  }
  if (until > border) {
    const int64_t start = std::max(from, border);
    EDL_RETURN_IF_ERROR(ReadInto(files->current.get(), start - border, until - start, piece.text));
  }
  piece.next_offset = from + static_cast<int64_t>(piece.text.size());
  return piece;
}

}  // namespace edl::backend::local
