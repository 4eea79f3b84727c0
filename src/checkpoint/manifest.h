#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/shard_set.h"

namespace edl::checkpoint {

// What a checkpoint is made of: the file that is written last, so that a folder without one is no
// checkpoint. docs/formats/checkpoint.md.
struct Manifest {
  struct Part {
    std::string file;  // within the checkpoint's folder
    uint64_t bytes = 0;
    // The buckets that it has: from the first to one before the end.
    uint64_t first_bucket = 0;
    uint64_t end_bucket = 0;

    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  // Only for a job that has a master. A checkpoint that a program took by itself has none of these.
  uint64_t ps_epoch = 0;
  int64_t version = 0;
  ShardSet covered;  // shards whose every batch is in every part

  // Paths in `folder` of the parts that have some of the buckets [first, end).
  std::vector<std::string> PathsFor(const std::filesystem::path& folder, uint64_t first,
                                    uint64_t end) const;

  bool operator==(const Manifest&) const = default;
};

// Whether the folder holds a checkpoint, good or damaged. An error: it cannot be told.
Result<bool> HasManifest(const std::filesystem::path& folder);

// Returns when it will survive a loss of power.
Status WriteManifest(const std::filesystem::path& folder, const Manifest& manifest);

// NotFound: the folder holds no checkpoint. DataLoss: it is damaged: a part is missing or of
// another length, or the parts do not have every bucket once. Others: it cannot be read now, and
// may be good.
Result<Manifest> ReadManifest(const std::filesystem::path& folder);

}  // namespace edl::checkpoint
