#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace edl::ps {

// Owns a block of memory that starts as zeros. Small blocks come from the heap. Blocks of kLarge
// bytes or more are cut from large ranges of reserved address space, on huge pages where the kernel
// has some. Confined.
class Pages {
 public:
  Pages() = default;
  // ResourceExhausted: the system has no memory left.
  static Result<Pages> Make(size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // The size of the block that Make(bytes) returns.
  static size_t RoundedUp(size_t bytes);
  // Blocks of this size or more are on huge pages.
  static constexpr size_t kLarge = size_t{1} << 20;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// An allocator of equally long blocks that are identified by numbers. A few blocks lie in one
// allocation that grows with them; many lie in slabs of 64 MiB. Confined.
class Slabs {
 public:
  // `most` limits the memory that is reserved ahead: the caller never takes more blocks.
  // REQUIRES: block_bytes > 0 and a multiple of 8.
  explicit Slabs(size_t block_bytes, size_t most = kMost);

  // Limit of blocks; their numbers start at 0.
  static constexpr uint32_t kMost = (uint32_t{1} << 30) - 2;

  // Reserves memory for `blocks` more blocks. May move all blocks. ResourceExhausted: there is no
  // memory, or no number, left for them.
  Status Reserve(size_t blocks);
  // Returns the number of a free block, whose content is undefined. Moves no block.
  // REQUIRES: Reserve() was called for it.
  uint32_t Take();
  // Frees a block.
  void Give(uint32_t number) { free_.push_back(number); }

  std::byte* At(uint32_t number) const {
    return slabs_[number >> shift_].data() + size_t{number & mask_} * block_bytes_;
  }
  size_t block_bytes() const { return block_bytes_; }
  // One above the largest number that was ever taken.
  uint32_t taken() const { return next_; }
  // Memory of all blocks that were ever taken, free ones included.
  size_t bytes() const;
  // An upper bound of bytes() for `blocks` blocks.
  static size_t MostBytes(size_t block_bytes, size_t blocks);

 private:
  Status Grow(size_t blocks);

  const size_t block_bytes_;
  const size_t most_;
  unsigned shift_ = 0;  // a slab has 2^shift_ blocks
  uint32_t mask_ = 0;
  uint32_t next_ = 0;
  size_t room_ = 0;  // number of blocks for which there is memory
  // While there are few blocks, there is only one slab, shorter than the later ones.
  std::vector<Pages> slabs_;
  std::vector<uint32_t> free_;
};

}  // namespace edl::ps
