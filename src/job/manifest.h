#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "job/shard_set.h"

namespace edl::job {

// What a checkpoint is made of: the file that is written last, so that a folder without one is no
// checkpoint. docs/formats/checkpoint.md.
struct Manifest {
  struct Part {
    std::string file;  // within the checkpoint's folder
    uint64_t bytes = 0;

    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  // Of a job that has a master; a checkpoint that a program took by itself has none of these.
  uint64_t ps_epoch = 0;
  int64_t version = 0;
  ShardSet covered;  // shards whose every batch is in every part

  bool operator==(const Manifest&) const = default;
};

// Whether the folder holds a checkpoint, good or damaged.
bool HasManifest(const std::filesystem::path& folder);

// Returns when it will survive a loss of power.
Status WriteManifest(const std::filesystem::path& folder, const Manifest& manifest);

// NotFound: the folder holds no checkpoint. DataLoss: it is damaged, or a part is missing or of
// another length.
Result<Manifest> ReadManifest(const std::filesystem::path& folder);

}  // namespace edl::job
