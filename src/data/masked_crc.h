#pragma once

#include <cstdint>
#include <string_view>

#include "base/crc32c.h"
#include "base/text.h"

namespace edl::data {

// The checksum of TFRecord and of snappy's framing format: CRC-32C, rotated and shifted, because
// the CRC of bytes that contain their own CRC is weak.
inline uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(AsBytes(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace edl::data
