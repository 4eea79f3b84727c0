#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace edl::checkpoint {

// Returns the ids of all rows that a checkpoint has of a table, in no order. For an export, which
// has to know the ids of a table without bounds. Fails like ReadManifest and PartReader. NotFound:
// the checkpoint has no such table.
Result<std::vector<int64_t>> ReadTableIds(const std::filesystem::path& folder,
                                          const std::string& table);

// The newest complete checkpoint in a folder of checkpoints, by version, then by the number of the
// save. NotFound: there is none.
Result<std::filesystem::path> NewestCheckpoint(const std::filesystem::path& folder);

}  // namespace edl::checkpoint
