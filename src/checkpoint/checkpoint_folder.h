#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/ids.h"

namespace edl::checkpoint {

// The name of a checkpoint's folder. It contains the id of the ledger that refers to the
// checkpoint, so two runs of a job that save to one folder never use the same name, and each
// recognizes its own.
struct CheckpointName {
  int64_t version = 0;  // of the job when the save started
  job::LedgerId ledger;
  int64_t save = 0;  // counts the saves of the ledger

  // "version-100.00c0ffee00c0ffee.7".
  std::string ToText() const;
  // nullopt: `text` is not such a name.
  static std::optional<CheckpointName> FromText(std::string_view text);

  bool operator==(const CheckpointName&) const = default;
};

// Makes the folder of a new checkpoint, and its parents, and syncs them. AlreadyExists: the folder
// exists.
Status MakeCheckpointFolder(const std::filesystem::path& folder);

// Removes the folders of this ledger's saves with a number lower than `below`, except those in
// `keep`. Folders of other ledgers, and folders with other names, stay. Returns the names of the
// removed folders. A folder that cannot be removed is skipped.
std::vector<std::string> RemoveOrphans(const std::filesystem::path& folder, job::LedgerId ledger,
                                       const std::vector<std::string>& keep, int64_t below);

}  // namespace edl::checkpoint
