#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "wire/frame.h"

namespace edl::wire {

// Assembles frames from a stream of bytes. The bytes of a body are read into their final memory:
//
//   n = read(fd, reader.Room());  status = reader.Add(n);  while (frame = reader.Next()) ...
//
// Confined.
class FrameReader {
 public:
  explicit FrameReader(FrameLimits limits = {}) : limits_(limits) {}

  // The memory for the next bytes of the stream; never empty. REQUIRES: Next() has returned
  // nullopt.
  std::span<std::byte> Room();
  // Call this after `size` bytes were written to Room(). Fails like DecodeHeader; the stream cannot
  // be read any further then, because the begin of the next frame is unknown.
  // REQUIRES: size <= Room().size().
  Status Add(size_t size);
  // The next frame, if it is complete.
  std::optional<Frame> Next();
  // Reuses the memory of a frame that is no longer needed.
  void Recycle(Frame frame);
  // False: the stream is in the middle of a frame, and may not end here.
  bool IsBetweenFrames() const { return !frame_.has_value() && filled_ == 0; }

 private:
  const FrameLimits limits_;
  std::array<std::byte, FrameHeader::kBytes> header_{};
  std::optional<Frame> frame_;  // whose header is known
  size_t filled_ = 0;           // of the header, then of the body
  Buffer spare_;
};

}  // namespace edl::wire
