#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"

namespace edl::wire {

// Tensors begin at multiples of this, both counted from the first byte of the body and in memory.
inline constexpr size_t kAlignment = 64;

inline constexpr size_t AlignedUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The first bytes of a frame.
struct FrameHeader {
  static constexpr size_t kBytes = 32;
  static constexpr uint8_t kVersion = 3;

  uint8_t version = kVersion;
  uint8_t type = 0;
  uint16_t flags = 0;
  uint64_t request = 0;     // number of the request; its answer has the same
  uint64_t body_bytes = 0;  // of meta part, padding and tensors together
  uint32_t meta_bytes = 0;  // of the meta part; tensors begin at the next multiple of 64

  bool operator==(const FrameHeader&) const = default;
};

// The largest frame that this end accepts.
struct FrameLimits {
  uint64_t body_bytes = uint64_t{1} << 30;
  uint32_t meta_bytes = uint32_t{1} << 20;
};

std::array<std::byte, FrameHeader::kBytes> EncodeHeader(const FrameHeader& header);

// InvalidArgument: the bytes are not a header, or were damaged in transit. Unimplemented: the
// header has another version. ResourceExhausted: the frame is larger than the limits.
Result<FrameHeader> DecodeHeader(std::span<const std::byte, FrameHeader::kBytes> bytes,
                                 const FrameLimits& limits);

// Memory that begins at a multiple of kAlignment. Its content is not initialized.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size);

  // Sets the size; the content is undefined afterwards. Allocates only beyond the capacity.
  void Reshape(size_t size);

  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };

  std::unique_ptr<std::byte[], Free> data_;  // NOLINT: of a size known at run time
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// A buffer with the bytes of `text`.
Buffer BufferOf(std::string_view text);

// One message.
struct Frame {
  FrameHeader header;
  Buffer body;

  std::span<const std::byte> meta() const { return body.bytes().first(header.meta_bytes); }
  // All tensors. The meta part describes how many there are and their sizes.
  std::span<const std::byte> tensors() const {
    return body.bytes().subspan(std::min(AlignedUp(header.meta_bytes), body.size()));
  }
};

}  // namespace edl::wire
