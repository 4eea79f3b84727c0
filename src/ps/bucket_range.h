#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "job/ids.h"
#include "wire/placement.h"

namespace edl::ps {

// The buckets first..end-1: those of a lane, or those of a part of a checkpoint.
struct BucketRange {
  wire::Bucket first = 0;
  size_t end = 0;

  static BucketRange OfLane(const wire::Placement& placement, job::LaneInJob lane) {
    return {.first = placement.FirstOf(lane), .end = placement.EndOf(lane)};
  }

  size_t size() const { return end - first; }
  bool Contains(size_t bucket) const { return bucket >= first && bucket < end; }
  bool Overlaps(const BucketRange& other) const { return first < other.end && other.first < end; }

  bool operator==(const BucketRange&) const = default;
};

// The buckets of a lane that take part in a step: all of them, or the listed ones. Immutable.
class BucketSubset {
 public:
  // `members` says for each bucket of the range whether it takes part. Without a value: all do.
  BucketSubset(const BucketRange& range, std::optional<std::vector<bool>> members)
      : first_(range.first), members_(std::move(members)) {}

  bool has_all() const { return !members_.has_value(); }
  // REQUIRES: `bucket` is in the range.
  bool Contains(wire::Bucket bucket) const { return has_all() || (*members_)[bucket - first_]; }

 private:
  wire::Bucket first_;
  std::optional<std::vector<bool>> members_;
};

}  // namespace edl::ps
