#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace edl {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // its bits from the last to the first
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[i] = rest;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t PlainSum(std::span<const std::byte> bytes, uint32_t sum) {
  for (const std::byte byte : bytes) {
    sum = (sum >> 8) ^ kTable[(sum ^ static_cast<uint32_t>(byte)) & 0xFF];
  }
  return sum;
}

#if defined(__x86_64__)
// The processor has an instruction for it since 2008.
__attribute__((target("sse4.2"))) uint32_t FastSum(std::span<const std::byte> bytes, uint32_t sum) {
  uint64_t wide = sum;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
    bytes = bytes.subspan(sizeof(word));
  }
  return PlainSum(bytes, static_cast<uint32_t>(wide));
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2") != 0;
  if (fast) return ~FastSum(bytes, ~before);
#endif
  return ~PlainSum(bytes, ~before);
}

}  // namespace edl
