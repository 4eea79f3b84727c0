#include "data/output_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace edl::data {

Result<OutputFile> OutputFile::Create(std::string path) {
  const std::filesystem::path whole(path);
  constexpr int kTries = 1000;
  // Not mkstemp: the umask decides who may read the file.
  for (int i = 0; i < kTries; ++i) {
    std::string temporary =
        (whole.parent_path() / fmt::format(".{}.{}-{}", whole.filename().string(), getpid(), i))
            .string();
    FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.valid()) return OutputFile(std::move(path), std::move(temporary), std::move(file));
    if (errno != EEXIST) return Errno("creating the record file {}", path);
  }
  return AlreadyExists("creating the record file {}: {} files of unfinished writers are beside it",
                       path, kTries);
}

OutputFile::~OutputFile() {
  if (file_.valid()) unlink(temporary_.c_str());
}

Status OutputFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Errno("writing the record file {}", path_);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

Status OutputFile::Commit() {
  if (fsync(file_.get()) != 0) return Errno("fsync of the record file {}", path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Errno("renaming {} to {}", temporary_, path_);
  }
  file_.Close();
  return SyncFolder(std::filesystem::path(path_).parent_path());
}

}  // namespace edl::data
