#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/range_set.h"
#include "base/status.h"
#include "job/ids.h"

namespace edl::checkpoint {

// A set of shards of one ledger, stored as ranges. A checkpoint records the shards that it covers.
struct ShardSet {
  struct Dataset {
    uint32_t generation = 0;
    RangeSet epochs;                     // epochs that are in the set as a whole
    std::map<int64_t, RangeSet> shards;  // ordinals of the other epochs, by epoch

    bool operator==(const Dataset&) const = default;
  };
  job::LedgerId ledger;
  std::map<job::DatasetId, Dataset> datasets;

  bool operator==(const ShardSet&) const = default;

  // True for shards of older generations: they can no longer be leased.
  bool Contains(job::DatasetId dataset, uint32_t generation, int64_t epoch, uint64_t ordinal) const;

  // JSON, docs/formats/checkpoint.md.
  std::string ToJson() const;
  // DataLoss: `text` is not a shard set.
  static Result<ShardSet> FromJson(const std::string& text);
};

}  // namespace edl::checkpoint
