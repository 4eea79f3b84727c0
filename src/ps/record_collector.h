#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "wire/frame.h"

namespace edl::ps {

// What a save number is: it rises with each save of a lane, and a row or block that has it was
// saved in that save, or made after its cut.
using SaveNumber = uint8_t;

// Collects equally long records of a save into chunks. Confined.
class RecordCollector {
 public:
  // Gets each chunk that is full, and the last one.
  using Give = std::function<void(wire::Buffer chunk, size_t records)>;
  // Memory for a chunk: that of one which is done with, or none.
  using Reuse = std::function<wire::Buffer()>;

  RecordCollector(size_t record_bytes, Give give, Reuse reuse)
      : record_bytes_(record_bytes), give_(std::move(give)), reuse_(std::move(reuse)) {}

  void Add(const std::byte* record) {
    if (chunk_.capacity() == 0) {
      chunk_ = reuse_();
      chunk_.Reshape(RecordsOfChunk() * record_bytes_);
    }
    std::memcpy(chunk_.data() + records_ * record_bytes_, record, record_bytes_);
    if (++records_ == RecordsOfChunk()) End();
  }
  // Gives what is left.
  void End() {
    if (records_ == 0) return;
    chunk_.Reshape(records_ * record_bytes_);
    give_(std::exchange(chunk_, wire::Buffer()), std::exchange(records_, 0));
  }

 private:
  static constexpr size_t kChunkBytes = size_t{1} << 20;
  size_t RecordsOfChunk() const {
    return record_bytes_ >= kChunkBytes ? 1 : kChunkBytes / record_bytes_;
  }

  const size_t record_bytes_;
  const Give give_;
  const Reuse reuse_;
  wire::Buffer chunk_;
  size_t records_ = 0;
};

}  // namespace edl::ps
