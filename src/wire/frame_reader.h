#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "wire/frame.h"

namespace edl::wire {

// Puts frames together from a stream of bytes, each body straight into the memory where it stays:
//
//   n = read(fd, reader.Room());  status = reader.Add(n);  while (frame = reader.Next()) ...
//
// Confined.
class FrameReader {
 public:
  explicit FrameReader(FrameLimits limits = {}) : limits_(limits) {}

  // Where the next bytes of the stream belong; never empty. REQUIRES: Next() has given all frames.
  std::span<std::byte> Room();
  // That many bytes were written there. A failure is that of DecodeHeader, and the stream is lost:
  // nobody knows where the next frame begins. REQUIRES: size <= Room().size().
  Status Add(size_t size);
  // The frame that is complete.
  std::optional<Frame> Next();
  // Gives the memory of a frame that is done with back, for the next one.
  void Recycle(Frame frame);
  // Whether the stream may end here: not in the middle of a frame.
  bool IsBetweenFrames() const { return !frame_.has_value() && filled_ == 0; }

 private:
  const FrameLimits limits_;
  std::array<std::byte, FrameHeader::kBytes> header_{};
  std::optional<Frame> frame_;  // whose header is known
  size_t filled_ = 0;           // of the header, then of the body
  Buffer spare_;
};

}  // namespace edl::wire
