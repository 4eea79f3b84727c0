#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "job/ids.h"

namespace edl::checkpoint {

// The list of a checkpoint's parts. Its file is written last: a folder without it is not a
// checkpoint. docs/formats/checkpoint.md.
struct Manifest {
  struct Part {
    std::string file;  // within the checkpoint's folder
    uint64_t bytes = 0;
    // The part has the buckets [first_bucket, end_bucket).
    uint64_t first_bucket = 0;
    uint64_t end_bucket = 0;

    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  // Only in checkpoints of a job's master. A program that saves without a master leaves them at 0.
  job::PsEpoch ps_epoch;
  int64_t version = 0;
  ShardSet covered;  // shards of which every part has every batch

  // The paths of the parts that have some of the buckets [first, end).
  std::vector<std::string> PathsFor(const std::filesystem::path& folder, uint64_t first,
                                    uint64_t end) const;

  bool operator==(const Manifest&) const = default;
};

// Whether the folder contains a checkpoint, good or damaged. An error: the folder cannot be read.
Result<bool> HasManifest(const std::filesystem::path& folder);

// Returns when the manifest is durable.
Status WriteManifest(const std::filesystem::path& folder, const Manifest& manifest);

// NotFound: the folder contains no checkpoint. FailedPrecondition: the checkpoint has another
// format. DataLoss: it is damaged: a part is missing or has another length, or the parts do not
// have every bucket once. Others: it cannot be read now, and may be good.
Result<Manifest> ReadManifest(const std::filesystem::path& folder);

}  // namespace edl::checkpoint
