#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "wire/frame.h"

namespace edl::ps {

// The number of a save of a lane; it wraps around. A row or block with the number of the running
// save need not be saved any more: the save has it already, or it was created after the save began.
using SaveNumber = uint8_t;

// Collects equally long records into chunks of about 1 MiB. Confined.
class RecordCollector {
 public:
  // Called with each full chunk, and with the last one.
  using Give = std::function<void(wire::Buffer chunk, size_t records)>;
  // Returns the memory of a chunk that is not needed any more, or an empty buffer.
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
  // Gives the records that are left, as a shorter chunk.
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
