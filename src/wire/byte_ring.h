#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

#include "base/status.h"
#include "wire/doorbell.h"

namespace edl::wire {

// What the two ends of a ring of bytes tell each other, in memory that both see. Each member has a
// pair of cache lines for itself: processors fetch them in pairs.
struct RingControl {
  alignas(128) std::atomic<uint64_t> written;       // bytes in all, by the writer
  alignas(128) std::atomic<uint64_t> read;          // bytes in all, by the reader
  alignas(128) std::atomic<uint32_t> reader_waits;  // for bytes, unless 0
  alignas(128) std::atomic<uint32_t> writer_waits;  // for room, unless 0
};
static_assert(sizeof(RingControl) == 512);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

// The end that reads. The other end is not trusted: what it says of itself is checked, and what
// this end has said is never read back.
//
// Confined.
class RingReader {
 public:
  // REQUIRES: `bytes` is a power of two long; all zeros in `control`. All three outlive the reader.
  RingReader(RingControl& control, std::span<const std::byte> bytes, Doorbell& writer)
      : control_(control), bytes_(bytes), writer_(writer) {}

  // Fills the buffers, the first one first. 0: nothing is there, and the writer will ring when
  // there is. DataLoss: the writer claims what cannot be.
  Result<size_t> Read(std::span<const iovec> buffers);

 private:
  Result<size_t> Available() const;

  RingControl& control_;
  const std::span<const std::byte> bytes_;
  Doorbell& writer_;
  uint64_t read_ = 0;
};

// The end that writes, as wary as the other.
//
// Confined.
class RingWriter {
 public:
  // REQUIRES: as for RingReader.
  RingWriter(RingControl& control, std::span<std::byte> bytes, Doorbell& reader)
      : control_(control), bytes_(bytes), reader_(reader) {}

  // Takes what there is room for. 0: there is none, and the reader will ring when half of the ring
  // is free. DataLoss: the reader claims what cannot be.
  Result<size_t> Write(std::span<const iovec> pieces);

 private:
  Result<size_t> Room() const;

  RingControl& control_;
  const std::span<std::byte> bytes_;
  Doorbell& reader_;
  uint64_t written_ = 0;
};

}  // namespace edl::wire
