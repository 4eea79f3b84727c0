#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/byte_buffer.h"

namespace edl::data {

// Records one after the other in one buffer, so that a record needs no allocation. Confined.
struct RecordBatch {
  ByteBuffer bytes;
  std::vector<int64_t> offsets = {0};  // where record i begins, and at the end: bytes.size()

  size_t size() const { return offsets.size() - 1; }
  std::string_view operator[](size_t i) const {
    return bytes.view().substr(static_cast<size_t>(offsets[i]),
                               static_cast<size_t>(offsets[i + 1] - offsets[i]));
  }
  void Add(std::string_view record) {
    bytes.Append(record);
    offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  void Clear() {
    bytes.Clear();
    offsets.resize(1);
  }
};

}  // namespace edl::data
