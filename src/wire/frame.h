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

// What tensors begin at multiples of, from the body's first byte on and in memory.
inline constexpr size_t kAlignment = 64;

inline constexpr size_t AlignedUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// What a frame begins with.
struct FrameHeader {
  static constexpr size_t kBytes = 32;
  static constexpr uint8_t kVersion = 3;

  uint8_t version = kVersion;
  uint8_t type = 0;
  uint16_t flags = 0;
  uint64_t request = 0;     // the number that an answer repeats
  uint64_t body_bytes = 0;  // all that follows: meta, padding, tensors
  uint32_t meta_bytes = 0;  // the body's first part; tensors begin at the next multiple of 64

  bool operator==(const FrameHeader&) const = default;
};

// How long the parts of a frame may be that this end accepts.
struct FrameLimits {
  uint64_t body_bytes = uint64_t{1} << 30;
  uint32_t meta_bytes = uint32_t{1} << 20;
};

std::array<std::byte, FrameHeader::kBytes> EncodeHeader(const FrameHeader& header);

// InvalidArgument: these are no header, or one that was damaged on the way. Unimplemented: it is
// one of another version. ResourceExhausted: it announces more than the limits allow.
Result<FrameHeader> DecodeHeader(std::span<const std::byte, FrameHeader::kBytes> bytes,
                                 const FrameLimits& limits);

// Memory at a multiple of kAlignment, of any content.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size);

  // Has that size from now on, and any content; asks for memory only to be larger than ever.
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

// The bytes of `text`.
Buffer BufferOf(std::string_view text);

// One message.
struct Frame {
  FrameHeader header;
  Buffer body;

  std::span<const std::byte> meta() const { return body.bytes().first(header.meta_bytes); }
  // All tensors; how many there are and how large is said by the meta part.
  std::span<const std::byte> tensors() const {
    return body.bytes().subspan(std::min(AlignedUp(header.meta_bytes), body.size()));
  }
};

}  // namespace edl::wire
