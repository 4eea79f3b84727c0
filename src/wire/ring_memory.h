#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "wire/byte_ring.h"

namespace edl::wire {

// Bounds of the capacity of a ring, which is a power of two.
inline constexpr size_t kLeastRingBytes = size_t{4} << 10;
inline constexpr size_t kMostRingBytes = size_t{64} << 20;

// Makes a file in memory for two rings of `capacity` bytes, one for each direction. It is sealed:
// no process can change its size. InvalidArgument: the capacity is not allowed.
Result<FileDescriptor> MakeRingFile(size_t capacity);

// Such a file, mapped into this process. docs/formats/wire.md has its layout. Immutable.
class RingMemory {
 public:
  // InvalidArgument: MakeRingFile did not make this file.
  static Result<RingMemory> Map(const FileDescriptor& file);

  enum class Direction { kToServer, kToClient };
  RingControl& control(Direction direction) const;
  std::span<std::byte> bytes(Direction direction) const;

 private:
  struct Unmap {
    size_t size = 0;
    void operator()(std::byte* start) const;
  };

  RingMemory(std::unique_ptr<std::byte, Unmap> start, size_t capacity)
      : start_(std::move(start)), capacity_(capacity) {}

  std::unique_ptr<std::byte, Unmap> start_;
  size_t capacity_;
};

}  // namespace edl::wire
