#pragma once

#include <array>
#include <cstdint>

namespace edl::ps {

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

// Philox4x32-10 (Salmon et al., 2011): four random words that depend only on the key and the
// counter. So a row gets the same initial values on any server, in any order of creation.
inline std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> words = {
      static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
      static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * words[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * words[2];
    words = {
        static_cast<uint32_t>(product1 >> 32) ^ words[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ words[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return words;
}

// A value in [0, 1) from the upper 24 bits, which is the precision of a float.
inline float ToUnit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

}  // namespace edl::ps
