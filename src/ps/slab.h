#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace edl::ps {

// Memory, all zeros. A little is ordinary memory of the heap. Much is on huge pages where the
// kernel has some, cut from large ranges of reserved address space.
class Pages {
 public:
  Pages() = default;
  // ResourceExhausted: the system has none left.
  static Result<Pages> Make(size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // What it takes when so many bytes are asked for.
  static size_t RoundedUp(size_t bytes);
  // From here on it is on huge pages.
  static constexpr size_t kLarge = size_t{1} << 20;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Blocks of one size, by number. While there are few they lie in memory that grows with them; many
// lie in slabs. Confined.
class Slabs {
 public:
  // There will never be more than `most` blocks. REQUIRES: block_bytes > 0 and a multiple of 8.
  explicit Slabs(size_t block_bytes, size_t most = kMost);

  static constexpr uint32_t kMost = (uint32_t{1} << 30) - 2;  // numbers, from 0

  // Makes room for so many blocks more. Blocks may move. ResourceExhausted: there is no memory, or
  // no number, left for them.
  Status Reserve(size_t blocks);
  // The number of a block that nobody has, whose content is anything. No block moves.
  // REQUIRES: room was made for it.
  uint32_t Take();
  void Give(uint32_t number) { free_.push_back(number); }

  std::byte* At(uint32_t number) const {
    return slabs_[number >> shift_].data() + size_t{number & mask_} * block_bytes_;
  }
  size_t block_bytes() const { return block_bytes_; }
  // Numbers that were ever taken: all below it.
  uint32_t taken() const { return next_; }
  // Memory of all blocks that were ever taken.
  size_t bytes() const;
  // Memory that so many blocks of a size take at most.
  static size_t MostBytes(size_t block_bytes, size_t blocks);

 private:
  Status Grow(size_t blocks);

  const size_t block_bytes_;
  const size_t most_;
  unsigned shift_ = 0;  // a slab has 2^shift_ blocks
  uint32_t mask_ = 0;
  uint32_t next_ = 0;
  size_t room_ = 0;  // blocks for which there is memory
  // The first is shorter than the others while there are few blocks.
  std::vector<Pages> slabs_;
  std::vector<uint32_t> free_;
};

}  // namespace edl::ps
