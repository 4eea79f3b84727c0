#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

#include "base/status.h"
#include "wire/doorbell.h"

namespace edl::wire {

// The state of a ring of bytes that its two ends share, in shared memory. Each member has its own
// pair of cache lines, because processors fetch them in pairs.
struct RingControl {
  alignas(128) std::atomic<uint64_t> written;       // bytes so far; set by the writer
  alignas(128) std::atomic<uint64_t> read;          // bytes so far; set by the reader
  alignas(128) std::atomic<uint32_t> reader_waits;  // not 0: the reader waits for bytes
  alignas(128) std::atomic<uint32_t> writer_waits;  // not 0: the writer waits for room
};
static_assert(sizeof(RingControl) == 512);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

// The reading end. It does not trust the writer: it checks the writer's counter, and never reads
// its own counter back from the shared memory.
//
// Confined.
class RingReader {
 public:
  // REQUIRES: `bytes` is a power of two long; all zeros in `control`. All three outlive the reader.
  RingReader(RingControl& control, std::span<const std::byte> bytes, Doorbell& writer)
      : control_(control), bytes_(bytes), writer_(writer) {}

  // Fills `buffers` in order, and returns the number of bytes. 0: the ring is empty, and the writer
  // will ring the doorbell when it is not. DataLoss: the writer's counter is impossible.
  Result<size_t> Read(std::span<const iovec> buffers);

 private:
  Result<size_t> Available() const;

  RingControl& control_;
  const std::span<const std::byte> bytes_;
  Doorbell& writer_;
  uint64_t read_ = 0;
};

// The writing end. It does not trust the reader either.
//
// Confined.
class RingWriter {
 public:
  // REQUIRES: as for RingReader.
  RingWriter(RingControl& control, std::span<std::byte> bytes, Doorbell& reader)
      : control_(control), bytes_(bytes), reader_(reader) {}

  // Writes as much of `pieces` as fits, and returns the number of bytes. 0: the ring is full, and
  // the reader will ring the doorbell when half of it is free. DataLoss: the reader's counter is
  // impossible.
  Result<size_t> Write(std::span<const iovec> pieces);

 private:
  Result<size_t> Room() const;

  RingControl& control_;
  const std::span<std::byte> bytes_;
  Doorbell& reader_;
  uint64_t written_ = 0;
};

}  // namespace edl::wire
