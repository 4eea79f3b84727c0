#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace edl::wire {

// The checksum CRC-32C (Castagnoli) of some bytes. For headers: no processor's instruction is used.
uint32_t Crc32c(std::span<const std::byte> bytes);

}  // namespace edl::wire
