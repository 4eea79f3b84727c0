#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "job/ids.h"

namespace edl::wire {

// The ids of all tables and the blocks of all dense tensors are divided into this many buckets. The
// number is fixed: watermarks are kept for each bucket, and whole buckets move between lanes.
inline constexpr size_t kBuckets = 1024;
using Bucket = uint16_t;

// Spreads ids over 64 bits: consecutive ids are common.
inline uint64_t HashOf(int64_t id) {
  auto hash = static_cast<uint64_t>(id);
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93;
  return hash ^ (hash >> 32);
}

// Hash of a name: FNV-1a, which is the same on every machine. std::hash may differ.
uint64_t HashOf(std::string_view name);

inline Bucket BucketOfHash(uint64_t hash) { return static_cast<Bucket>(hash % kBuckets); }
inline Bucket BucketOf(int64_t id) { return BucketOfHash(HashOf(id)); }

// A dense tensor is cut into blocks of this many values; the last block may be shorter.
inline constexpr size_t kBlockValues = size_t{16} * 1024;
inline size_t BlocksOf(size_t values) { return (values + kBlockValues - 1) / kBlockValues; }
inline size_t ValuesOfBlock(size_t values, size_t block) {
  const size_t rest = values - block * kBlockValues;
  return rest < kBlockValues ? rest : kBlockValues;
}
// The blocks of a tensor are spread evenly over any number of lanes.
Bucket BucketOfBlock(std::string_view tensor, size_t block);

// Maps the buckets to the lanes of a job. Each lane has a contiguous range of buckets; the sizes of
// two ranges differ by at most one. Immutable.
class Placement {
 public:
  // REQUIRES: 0 < lanes <= kBuckets.
  explicit Placement(size_t lanes);

  size_t lanes() const { return lanes_; }
  job::LaneInJob LaneOf(Bucket bucket) const {
    return job::LaneInJob(static_cast<uint32_t>(bucket * lanes_ / kBuckets));
  }
  Bucket FirstOf(job::LaneInJob lane) const { return static_cast<Bucket>(Begin(lane.value())); }
  // One past the last.
  size_t EndOf(job::LaneInJob lane) const { return Begin(size_t{lane.value()} + 1); }

 private:
  size_t Begin(size_t lane) const { return (lane * kBuckets + lanes_ - 1) / lanes_; }

  size_t lanes_;
};

}  // namespace edl::wire
