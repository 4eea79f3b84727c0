#include "wire/frame_reader.h"

#include <utility>

#include "base/check.h"

namespace edl::wire {
namespace {

// Larger buffers are freed, so that one large frame does not cost memory for the whole connection.
constexpr size_t kMostKept = size_t{16} << 20;

}  // namespace

std::span<std::byte> FrameReader::Room() {
  const std::span<std::byte> whole =
      frame_.has_value() ? frame_->body.bytes() : std::span<std::byte>(header_);
  CHECK(filled_ < whole.size(), "Next() was not called for a complete frame");
  return whole.subspan(filled_);
}

Status FrameReader::Add(size_t size) {
  CHECK(size <= Room().size(), "{} bytes were read into a room of {}", size, Room().size());
  filled_ += size;
  if (frame_.has_value() || filled_ < header_.size()) return Ok();
  EDL_ASSIGN_OR_RETURN(const FrameHeader header, DecodeHeader(header_, limits_));
  frame_ = Frame{.header = header, .body = std::exchange(spare_, Buffer())};
  frame_->body.Reshape(header.body_bytes);
  filled_ = 0;
  return Ok();
}

std::optional<Frame> FrameReader::Next() {
  if (!frame_.has_value() || filled_ < frame_->body.size()) return std::nullopt;
  filled_ = 0;
  return std::exchange(frame_, std::nullopt);
}

void FrameReader::Recycle(Frame frame) {
  if (frame.body.capacity() <= kMostKept) spare_ = std::move(frame.body);
}

}  // namespace edl::wire
