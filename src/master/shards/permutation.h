#pragma once

#include <array>
#include <cstdint>

namespace edl::master {

// A random-looking order of [0, n), computed per place and so free of memory: a Feistel network
// over the smallest even number of bits that holds n, walked until it lands inside. The same
// (n, key) gives the same order on every machine and after every restart.
//
// Immutable.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key);

  // The number at this place. REQUIRES: place < n.
  uint64_t At(uint64_t place) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Shuffle(uint64_t value) const;

  uint64_t n_;
  int half_bits_ = 1;
  uint64_t half_mask_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

// Mixes two numbers into one: for keys made of a seed and a position.
uint64_t Mix(uint64_t a, uint64_t b);

}  // namespace edl::master
