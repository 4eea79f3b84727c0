#include "wire/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace edl::wire {
namespace {

// Copies up to `most` bytes from `position` on. Calls `copy(at, memory, size)` for each range that
// is contiguous both in the ring and in memory, and `publish(moved)` after each eighth of the ring,
// so that the other end can process it while this end copies the next. Returns the number of bytes.
template <typename Copy, typename Publish>
size_t Move(std::span<const iovec> parts, uint64_t position, size_t capacity, size_t most,
            Copy copy, Publish publish) {
  const size_t step = capacity / 8;
  size_t moved = 0;
  size_t published = 0;
  for (const iovec& part : parts) {
    auto* memory = static_cast<std::byte*>(part.iov_base);
    for (size_t left = std::min(part.iov_len, most - moved); left > 0;) {
      const size_t at = (position + moved) & (capacity - 1);
      const size_t size = std::min({left, capacity - at, published + step - moved});
      copy(at, memory, size);
      memory += size;
      left -= size;
      moved += size;
      if (moved == published + step) publish(published = moved);
    }
  }
  if (moved > published) publish(moved);
  return moved;
}

// One end publishes its position, then checks whether the other end waits. The other end sets its
// flag, then checks the position. With this fence in between, at least one of them sees the other.
void FenceBetweenSayingAndLooking() { std::atomic_thread_fence(std::memory_order_seq_cst); }

void Wake(std::atomic<uint32_t>& waits, Doorbell& who) {
  FenceBetweenSayingAndLooking();
  if (waits.load(std::memory_order_relaxed) == 0) return;
  waits.store(0, std::memory_order_relaxed);
  who.Ring();
}

}  // namespace

Result<size_t> RingReader::Available() const {
  const uint64_t available = control_.written.load(std::memory_order_acquire) - read_;
  if (available <= bytes_.size()) return available;
  return DataLoss("the counters of a ring of {} bytes are impossible: {} bytes written, {} read",
                  bytes_.size(), read_ + available, read_);
}

Result<size_t> RingReader::Read(std::span<const iovec> buffers) {
  EDL_ASSIGN_OR_RETURN(size_t available, Available());
  if (available == 0) {
    control_.reader_waits.store(1, std::memory_order_relaxed);
    FenceBetweenSayingAndLooking();
    EDL_ASSIGN_OR_RETURN(available, Available());
    if (available == 0) return size_t{0};
    control_.reader_waits.store(0, std::memory_order_relaxed);
  }
  const size_t size = Move(
      buffers, read_, bytes_.size(), available,
      [&](size_t at, std::byte* memory, size_t size) {
        std::memcpy(memory, bytes_.data() + at, size);
      },
      [&](size_t moved) {
        control_.read.store(read_ + moved, std::memory_order_release);
        // If it were notified for a little room, a writer would soon wait again.
        if (available - moved <= bytes_.size() / 2) Wake(control_.writer_waits, writer_);
      });
  read_ += size;
  return size;
}

Result<size_t> RingWriter::Room() const {
  const uint64_t in_use = written_ - control_.read.load(std::memory_order_acquire);
  if (in_use <= bytes_.size()) return bytes_.size() - in_use;
  return DataLoss("the counters of a ring of {} bytes are impossible: {} bytes read, {} written",
                  bytes_.size(), written_ - in_use, written_);
}

Result<size_t> RingWriter::Write(std::span<const iovec> pieces) {
  EDL_ASSIGN_OR_RETURN(size_t room, Room());
  if (room == 0) {
    control_.writer_waits.store(1, std::memory_order_relaxed);
    FenceBetweenSayingAndLooking();
    EDL_ASSIGN_OR_RETURN(room, Room());
    if (room == 0) return size_t{0};
    control_.writer_waits.store(0, std::memory_order_relaxed);
  }
  const size_t size = Move(
      pieces, written_, bytes_.size(), room,
      [&](size_t at, const std::byte* memory, size_t size) {
        std::memcpy(bytes_.data() + at, memory, size);
      },
      [&](size_t moved) {
        control_.written.store(written_ + moved, std::memory_order_release);
        Wake(control_.reader_waits, reader_);
      });
  written_ += size;
  return size;
}

}  // namespace edl::wire
