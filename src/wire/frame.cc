#include "wire/frame.h"

#include <bit>
#include <cstring>
#include <new>

#include "base/crc32c.h"

namespace edl::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr uint32_t kMagic = 0x4C445045;  // "EPDL"

// The layout on the wire.
struct Layout {
  uint32_t magic;
  uint8_t version;
  uint8_t type;
  uint16_t flags;
  uint64_t request;
  uint64_t body_bytes;
  uint32_t meta_bytes;
  uint32_t checksum;  // of all before it
};
static_assert(sizeof(Layout) == FrameHeader::kBytes);

constexpr size_t kSummed = FrameHeader::kBytes - sizeof(uint32_t);

}  // namespace

std::array<std::byte, FrameHeader::kBytes> EncodeHeader(const FrameHeader& header) {
  Layout layout{.magic = kMagic,
                .version = header.version,
                .type = header.type,
                .flags = header.flags,
                .request = header.request,
                .body_bytes = header.body_bytes,
                .meta_bytes = header.meta_bytes};
  layout.checksum = Crc32c(std::as_bytes(std::span(&layout, 1)).first(kSummed));
  return std::bit_cast<std::array<std::byte, FrameHeader::kBytes>>(layout);
}

Result<FrameHeader> DecodeHeader(std::span<const std::byte, FrameHeader::kBytes> bytes,
                                 const FrameLimits& limits) {
  Layout layout;  // NOLINT: written by the next line
  std::memcpy(&layout, bytes.data(), sizeof(layout));
  if (layout.magic != kMagic) {
    return InvalidArgument("not a frame: it begins with {:#010x}", layout.magic);
  }
  // Checked before the checksum: another version may have another layout.
  if (layout.version != FrameHeader::kVersion) {
    return Unimplemented(
        "a frame has version {}, and this process supports version {}: use the same release of "
        "elasticdl "
        "everywhere",
        layout.version, FrameHeader::kVersion);
  }
  if (layout.checksum != Crc32c(bytes.first(kSummed))) {
    return InvalidArgument("the header of a frame was damaged in transit");
  }
  if (layout.body_bytes > limits.body_bytes) {
    return ResourceExhausted(
        "a frame has {} bytes, and the limit is {}; pull or push fewer rows at once",
        layout.body_bytes, limits.body_bytes);
  }
  if (layout.meta_bytes > limits.meta_bytes) {
    return ResourceExhausted(
        "the meta part of a frame has {} bytes, and the limit is {}; use fewer tables and tensors "
        "in one message",
        layout.meta_bytes, limits.meta_bytes);
  }
  if (layout.meta_bytes > layout.body_bytes) {
    return InvalidArgument("the meta part of a frame has {} bytes, longer than its body of {}",
                           layout.meta_bytes, layout.body_bytes);
  }
  return FrameHeader{.version = layout.version,
                     .type = layout.type,
                     .flags = layout.flags,
                     .request = layout.request,
                     .body_bytes = layout.body_bytes,
                     .meta_bytes = layout.meta_bytes};
}

Buffer::Buffer(size_t size) { Reshape(size); }

void Buffer::Reshape(size_t size) {
  if (size > capacity_) {
    data_.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment})));
    capacity_ = size;
  }
  size_ = size;
}

Buffer BufferOf(std::string_view text) {
  Buffer buffer(text.size());
  if (!text.empty()) std::memcpy(buffer.data(), text.data(), text.size());
  return buffer;
}

void Buffer::Free::operator()(std::byte* data) const {
  ::operator delete (data, std::align_val_t{kAlignment});
}

}  // namespace edl::wire
