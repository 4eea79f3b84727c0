#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace edl::wire {

// The fixed parts of the id space of all tables, and of the blocks of all dense tensors. What has
// been applied is remembered by bucket, and buckets are what moves between lanes.
inline constexpr size_t kBuckets = 1024;
using Bucket = uint16_t;

// Spreads ids over 64 bits, as they often come in a row.
inline uint64_t HashOf(int64_t id) {
  auto hash = static_cast<uint64_t>(id);
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93;
  return hash ^ (hash >> 32);
}

// Hash of a name: FNV-1a, which is the same on every machine. std::hash need not be.
uint64_t HashOf(std::string_view name);

inline Bucket BucketOfHash(uint64_t hash) { return static_cast<Bucket>(hash % kBuckets); }
inline Bucket BucketOf(int64_t id) { return BucketOfHash(HashOf(id)); }

// A dense tensor is cut into blocks of so many values; the last may be shorter.
inline constexpr size_t kBlockValues = size_t{16} * 1024;
inline size_t BlocksOf(size_t values) { return (values + kBlockValues - 1) / kBlockValues; }
inline size_t ValuesOfBlock(size_t values, size_t block) {
  const size_t rest = values - block * kBlockValues;
  return rest < kBlockValues ? rest : kBlockValues;
}
// The blocks of a tensor are spread evenly over any number of lanes.
Bucket BucketOfBlock(std::string_view tensor, size_t block);

// Which lane of a job has a bucket. Lanes are counted over all servers: those of the first, then
// those of the second. Each has a range of buckets, as long as the others' or longer by one.
// Immutable.
class Placement {
 public:
  // REQUIRES: 0 < lanes <= kBuckets.
  explicit Placement(size_t lanes);

  size_t lanes() const { return lanes_; }
  size_t LaneOf(Bucket bucket) const { return bucket * lanes_ / kBuckets; }
  Bucket FirstOf(size_t lane) const {
    return static_cast<Bucket>((lane * kBuckets + lanes_ - 1) / lanes_);
  }
  // One past the last.
  size_t EndOf(size_t lane) const { return ((lane + 1) * kBuckets + lanes_ - 1) / lanes_; }

 private:
  size_t lanes_;
};

}  // namespace edl::wire
