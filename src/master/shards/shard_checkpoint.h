#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/range_set.h"
#include "base/status.h"
#include "master/shards/dataset.h"
#include "master/types.h"

namespace edl::master {

// Where a dataset stood: docs/formats/shard-checkpoint.md. Reads what the published packages wrote
// ("v1.0") and what we write, which adds the order.
struct ShardCheckpoint {
  DatasetSpec spec;
  int64_t epoch = 0;
  // Places of the epoch's order, [start, end), that were not done.
  struct Places {
    int64_t start = 0;
    int64_t end = 0;
  };
  std::vector<Places> remaining;
  // Which record is at a place; none: what was saved does not say.
  std::optional<ShardOrder> order;
};

// `leased` are the open leases; they count as not done.
std::string SaveShards(const Dataset& dataset, std::vector<ShardKey> leased);

// InvalidArgument: not a shard checkpoint. Any text may come here: it is the users' to keep.
Result<ShardCheckpoint> ParseShards(const std::string& content);

// The ordinals of `dataset` that the checkpoint leaves to do. FailedPrecondition: the dataset is
// cut differently from the one that was saved.
Result<std::vector<RangeSet::Range>> RemainingShards(const ShardCheckpoint& checkpoint,
                                                     const Dataset& dataset);

}  // namespace edl::master
