#include "wire/frame_reader.h"

#include <utility>

#include "base/check.h"

namespace edl::wire {
namespace {

// A connection that once had a large frame does not keep its memory for ever.
constexpr size_t kMostKept = size_t{16} << 20;

}  // namespace

std::span<std::byte> FrameReader::Room() {
  const std::span<std::byte> whole =
      frame_.has_value() ? frame_->body.bytes() : std::span<std::byte>(header_);
  CHECK(filled_ < whole.size(), "a frame was not taken");
  return whole.subspan(filled_);
}

Status FrameReader::Add(size_t size) {
  CHECK(size <= Room().size(), "{} bytes in a room of {}", size, Room().size());
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
