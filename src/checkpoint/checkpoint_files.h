#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace edl::checkpoint {

// Creates, opens and removes parts of checkpoints at paths that callers choose. Any process that
// can connect to a server chooses them, so only paths below folders of the operator are allowed:
// * no component below the folder may be a symbolic link or "..";
// * a new part never replaces a file;
// * only regular files are opened, and opening one does not block.
// Immutable.
class CheckpointFiles {
 public:
  // Every absolute path is allowed.
  static CheckpointFiles Anywhere();
  // Only paths below these folders are allowed. Without folders no path is.
  static CheckpointFiles Below(std::vector<std::filesystem::path> roots);

  struct Created {
    FileDescriptor file;
    FileDescriptor folder;  // of the file; the caller syncs it too
  };
  // AlreadyExists: the file exists. PermissionDenied: the path is not allowed.
  Result<Created> Create(const std::filesystem::path& path) const;
  // InvalidArgument: not a regular file. PermissionDenied: the path is not allowed.
  Result<FileDescriptor> Open(const std::filesystem::path& path) const;
  // Removes a part if it exists and its path is allowed.
  void Remove(const std::filesystem::path& path) const;

 private:
  // The folder of a part.
  Result<FileDescriptor> OpenFolder(const std::filesystem::path& path) const;

  bool anywhere_ = false;
  std::vector<std::filesystem::path> roots_;
};

}  // namespace edl::checkpoint
