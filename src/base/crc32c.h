#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace edl {

// The checksum CRC-32C (Castagnoli) of some bytes; `before` is that of the bytes before them.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace edl
