#include "checkpoint/checkpoint_files.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace edl::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

Status CheckPath(const fs::path& path) {
  if (!path.is_absolute() || !path.has_filename()) {
    return InvalidArgument("'{}' is not the absolute path of a file", path.string());
  }
  if (std::ranges::find(path, fs::path("..")) != path.end()) {
    return PermissionDenied("'{}' must not contain '..'", path.string());
  }
  return Ok();
}

// The rest of the path below the folder. Empty: the path is not below the folder.
fs::path Below(const fs::path& folder, const fs::path& path) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (in_folder != folder.end()) return {};
  fs::path rest;
  for (auto at = in_path; at != path.end(); ++at) rest /= *at;
  return rest;
}

// Without "." and without a slash at the end.
fs::path Normal(const fs::path& path) {
  fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

Status CheckRegular(int file, const fs::path& path) {
  struct stat about {};
  if (fstat(file, &about) != 0) return Errno("opening {}", path.string());
  if (S_ISREG(about.st_mode)) return Ok();
  return InvalidArgument("{} is not a regular file", path.string());
}

}  // namespace

CheckpointFiles CheckpointFiles::Anywhere() {
  CheckpointFiles files;
  files.anywhere_ = true;
  return files;
}

CheckpointFiles CheckpointFiles::Below(std::vector<fs::path> roots) {
  CheckpointFiles files;
  for (const fs::path& root : roots) {
    files.roots_.push_back(Normal(fs::absolute(root)));
    // A caller may also use the path of the folder with its symbolic links resolved.
    std::error_code error;
    fs::path resolved = Normal(fs::weakly_canonical(root, error));
    if (!error && resolved != files.roots_.back()) files.roots_.push_back(std::move(resolved));
  }
  return files;
}

Result<FileDescriptor> CheckpointFiles::OpenFolder(const fs::path& path) const {
  EDL_RETURN_IF_ERROR(CheckPath(path));
  const fs::path normal = Normal(path);
  if (anywhere_) {
    FileDescriptor folder(open(normal.parent_path().c_str(), kFolderFlags));
    if (!folder.valid()) return Errno("opening the folder {}", normal.parent_path().string());
    return folder;
  }
  for (const fs::path& root : roots_) {
    const fs::path rest = checkpoint::Below(root, normal);
    if (rest.empty()) continue;
    FileDescriptor folder(open(root.c_str(), kFolderFlags));
    if (!folder.valid()) return Errno("opening --checkpoint_root={}", root.string());
    for (const fs::path& name : rest.parent_path()) {
      FileDescriptor next(openat(folder.get(), name.c_str(), kFolderFlags | O_NOFOLLOW));
      if (!next.valid()) {
        return Errno("opening the folder {} ('{}' must be a folder, not a symbolic link)",
                     normal.parent_path().string(), name.string());
      }
      folder = std::move(next);
    }
    return folder;
  }
  if (roots_.empty()) {
    return PermissionDenied(
        "this server may not save to or restore from {}: start it with --checkpoint_root=DIR, or "
        "with a --token_file",
        path.string());
  }
  return PermissionDenied("{} is not below a --checkpoint_root of this server, such as {}",
                          path.string(), roots_.front().string());
}

Result<CheckpointFiles::Created> CheckpointFiles::Create(const fs::path& path) const {
  EDL_ASSIGN_OR_RETURN(FileDescriptor folder, OpenFolder(path));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  FileDescriptor file(openat(folder.get(), path.filename().c_str(), kFlags, 0600));
  if (!file.valid()) return Errno("creating {}", path.string());
  return Created{.file = std::move(file), .folder = std::move(folder)};
}

Result<FileDescriptor> CheckpointFiles::Open(const fs::path& path) const {
  EDL_ASSIGN_OR_RETURN(const FileDescriptor folder, OpenFolder(path));
  // O_NONBLOCK: opening a FIFO would block until it has a writer.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  FileDescriptor file(openat(folder.get(), path.filename().c_str(), kFlags));
  if (!file.valid()) return Errno("opening {}", path.string());
  EDL_RETURN_IF_ERROR(CheckRegular(file.get(), path));
  return file;
}

void CheckpointFiles::Remove(const fs::path& path) const {
  const Result<FileDescriptor> folder = OpenFolder(path);
  if (folder.ok()) unlinkat(folder->get(), path.filename().c_str(), 0);
}

}  // namespace edl::checkpoint
