#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace edl::checkpoint {

// Creates, opens and removes parts of checkpoints at paths that callers name. Whoever reaches a
// server names them, so a path is only followed below folders that the operator gave:
// * no component below the folder may be a symbolic link or "..";
// * a new part never replaces a file;
// * only regular files are opened, and opening one does not block.
// Immutable.
class CheckpointFiles {
 public:
  // Every absolute path is allowed.
  static CheckpointFiles Anywhere();
  // Only paths below these folders. Without folders every path is refused.
  static CheckpointFiles Below(std::vector<std::filesystem::path> roots);

  struct Created {
    FileDescriptor file;
    FileDescriptor folder;  // which has to be made durable too
  };
  // AlreadyExists: there is a file of that name. PermissionDenied: the path is not allowed.
  Result<Created> Create(const std::filesystem::path& path) const;
  // InvalidArgument: it is no regular file. PermissionDenied: the path is not allowed.
  Result<FileDescriptor> Open(const std::filesystem::path& path) const;
  // Removes a part if it is there and may be.
  void Remove(const std::filesystem::path& path) const;

 private:
  // The folder of a part.
  Result<FileDescriptor> OpenFolder(const std::filesystem::path& path) const;

  bool anywhere_ = false;
  std::vector<std::filesystem::path> roots_;
};

}  // namespace edl::checkpoint
