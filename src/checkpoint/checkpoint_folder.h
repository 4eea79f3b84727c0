#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::checkpoint {

// The name of a checkpoint's folder. It carries the number of the ledger that names the checkpoint:
// two runs of a job that save to one folder never meet, and each can tell its own.
struct CheckpointName {
  int64_t version = 0;  // of the job when the save began
  uint64_t ledger = 0;
  int64_t save = 0;  // counts the saves of the ledger

  // "version-100.00c0ffee00c0ffee.7".
  std::string ToText() const;
  // None: this is no such name.
  static std::optional<CheckpointName> FromText(std::string_view text);

  bool operator==(const CheckpointName&) const = default;
};

// Makes the folder of a new checkpoint, and those above it. AlreadyExists: somebody made it before.
// Returns when it will survive a loss of power.
Status MakeCheckpointFolder(const std::filesystem::path& folder);

// Removes folders of saves below `below` that this ledger began and `keep` does not name. What
// another ledger wrote, and what has another name, stays. The names of those that were removed;
// one that cannot be is left for the next time.
std::vector<std::string> RemoveOrphans(const std::filesystem::path& folder, uint64_t ledger,
                                       const std::vector<std::string>& keep, int64_t below);

}  // namespace edl::checkpoint
