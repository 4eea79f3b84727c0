#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace edl::data {

static_assert(std::endian::native == std::endian::little, "record files are little-endian");

// Numbers in files have no alignment.
template <typename Number>
Number Load(const char* from) {
  Number number;  // NOLINT: written by the next line
  std::memcpy(&number, from, sizeof(number));
  return number;
}

template <typename Number>
void Store(Number number, char* to) {
  std::memcpy(to, &number, sizeof(number));
}

}  // namespace edl::data
