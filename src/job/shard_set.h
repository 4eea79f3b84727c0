#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/range_set.h"
#include "base/status.h"

namespace edl::job {

// Shards of one ledger, kept as ranges: what a checkpoint covers.
struct ShardSet {
  struct Dataset {
    uint32_t generation = 0;
    RangeSet epochs;                     // that are in it as a whole
    std::map<int64_t, RangeSet> shards;  // ordinals, by epoch; of other epochs

    bool operator==(const Dataset&) const = default;
  };
  uint64_t ledger = 0;
  std::map<int64_t, Dataset> datasets;  // by id

  bool operator==(const ShardSet&) const = default;

  // Of a generation before the one that it speaks of every shard is: nobody will ask for it.
  bool Contains(int64_t dataset, uint32_t generation, int64_t epoch, uint64_t ordinal) const;

  // JSON, docs/formats/checkpoint.md.
  std::string ToJson() const;
  // DataLoss: it is none.
  static Result<ShardSet> FromJson(const std::string& text);
};

}  // namespace edl::job
