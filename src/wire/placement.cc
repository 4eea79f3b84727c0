#include "wire/placement.h"

#include "base/check.h"

namespace edl::wire {
namespace {

constexpr int kBucketBits = 10;
static_assert(size_t{1} << kBucketBits == kBuckets);

// 0, 1/2, 1/4, 3/4, 1/8, ... of all buckets: any number of first values is spread evenly.
size_t Spread(size_t block) {
  size_t place = 0;
  for (int bit = 0; bit < kBucketBits; ++bit) {
    if ((block >> bit & 1) != 0) place |= size_t{1} << (kBucketBits - 1 - bit);
  }
  return place;
}

}  // namespace

uint64_t HashOf(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

Bucket BucketOfBlock(std::string_view tensor, size_t block) {
  const auto hash = static_cast<int64_t>(HashOf(tensor));
  return static_cast<Bucket>((HashOf(hash) + Spread(block)) % kBuckets);
}

Placement::Placement(size_t lanes) : lanes_(lanes) {
  CHECK(lanes > 0 && lanes <= kBuckets, "{} lanes for {} buckets", lanes, kBuckets);
}

}  // namespace edl::wire
