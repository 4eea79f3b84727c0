#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/range_set.h"
#include "base/status.h"
#include "master/shards/dataset.h"
#include "master/types.h"

namespace edl::master {

// The progress of a dataset as a text that users keep: docs/formats/shard-checkpoint.md. Reads the
// format of the published packages ("v1.0") and ours, which adds the order.
struct ShardCheckpoint {
  DatasetSpec spec;
  int64_t epoch = 0;
  // Positions [start, end) in the epoch's order that were not done.
  struct Places {
    int64_t start = 0;
    int64_t end = 0;
  };
  std::vector<Places> remaining;
  // Determines which record is at a position. nullopt: the text does not contain it.
  std::optional<ShardOrder> order;
};

// Writes the progress of a dataset. `leased`: the shards with open leases, which are not done.
std::string SaveShards(const Dataset& dataset, std::vector<ShardPosition> leased);

// Parses any text, because users keep it. InvalidArgument: it is not a shard checkpoint.
Result<ShardCheckpoint> ParseShards(const std::string& content);

// The ordinals of `dataset` that were not done. FailedPrecondition: the dataset has another size or
// shard size than the one that was saved.
Result<std::vector<RangeSet::Range>> RemainingShards(const ShardCheckpoint& checkpoint,
                                                     const Dataset& dataset);

}  // namespace edl::master
