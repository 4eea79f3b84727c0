#include "wire/crc32c.h"

#include <array>

namespace edl::wire {
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

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes) {
  uint32_t sum = ~uint32_t{0};
  for (const std::byte byte : bytes) {
    sum = (sum >> 8) ^ kTable[(sum ^ static_cast<uint32_t>(byte)) & 0xFF];
  }
  return ~sum;
}

}  // namespace edl::wire
