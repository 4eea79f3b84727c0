#include "master/shards/permutation.h"

#include "base/check.h"

namespace edl::master {
namespace {

// The finaliser of SplitMix64: every input bit reaches every output bit.
uint64_t Scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t Mix(uint64_t a, uint64_t b) { return Scramble(Scramble(a) ^ b); }

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
  for (size_t round = 0; round < keys_.size(); ++round) keys_.at(round) = Mix(key, round);
}

uint64_t Permutation::Shuffle(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & half_mask_;
  for (const uint64_t key : keys_) {
    const uint64_t next = left ^ (Mix(key, right) & half_mask_);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::At(uint64_t place) const {
  CHECK(place < n_, "place {} of {}", place, n_);
  uint64_t value = Shuffle(place);
  // The network has at most four times as many values as n, so the loop is short.
  while (value >= n_) value = Shuffle(value);
  return value;
}

}  // namespace edl::master
