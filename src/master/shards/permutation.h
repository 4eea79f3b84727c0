#pragma once

#include <array>
#include <cstdint>

namespace edl::master {

// A pseudo-random permutation of [0, n) that needs no memory, because each element is computed: a
// Feistel network over the smallest even number of bits that holds n, applied until the result is
// below n. The same (n, key) gives the same permutation on every machine and after every restart.
//
// Immutable.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key);

  // The element at this position. REQUIRES: place < n.
  uint64_t At(uint64_t place) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Shuffle(uint64_t value) const;

  uint64_t n_;
  int half_bits_ = 1;
  uint64_t half_mask_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

// Hashes two numbers into one, for keys that consist of a seed and a position.
uint64_t Mix(uint64_t a, uint64_t b);

}  // namespace edl::master
