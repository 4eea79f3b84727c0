#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::data {

// What the header of a .npy file says about its array.
struct NpyHeader {
  std::string dtype;           // such as "<f4"
  uint64_t item_bytes = 0;     // of one element
  std::vector<int64_t> shape;  // at least one axis
  uint64_t header_bytes = 0;   // where the elements begin
  uint64_t record_bytes = 0;   // of one element of the first axis
};

// The largest header that is read.
inline constexpr uint64_t kMostNpyHeaderBytes = uint64_t{1} << 16;

// Parses the header at the beginning of a file. `bytes` are the first bytes of the file, as many as
// the file has or kMostNpyHeaderBytes. DataLoss: it is malformed. Unimplemented: an array of Python
// objects, with named fields, in Fortran order, or without an axis.
Result<NpyHeader> ParseNpyHeader(std::string_view bytes);

}  // namespace edl::data
