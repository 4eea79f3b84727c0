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

// How many bytes a ring may hold, a power of two.
inline constexpr size_t kLeastRingBytes = size_t{4} << 10;
inline constexpr size_t kMostRingBytes = size_t{64} << 20;

// A file in memory for two rings of `capacity` bytes, one for each direction, and of a size that
// nobody can change any more. InvalidArgument: no such capacity.
Result<FileDescriptor> MakeRingFile(size_t capacity);

// Such a file in this process's memory. docs/formats/wire.md has its layout.
class RingMemory {
 public:
  // InvalidArgument: the file is not what MakeRingFile makes.
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
