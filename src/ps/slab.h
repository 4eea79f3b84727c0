#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace edl::ps {

// Memory of the system, all zeros, on huge pages where the kernel has some.
class Pages {
 public:
  Pages() = default;
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // What it takes when so many bytes are asked for.
  static size_t RoundedUp(size_t bytes);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Blocks of one size, by number. They never move and lie in slabs of many. Confined.
class Slabs {
 public:
  // REQUIRES: block_bytes > 0 and a multiple of 8.
  explicit Slabs(size_t block_bytes);

  static constexpr uint32_t kMost = (uint32_t{1} << 30) - 2;  // numbers, from 0

  // The number of a block that nobody has, whose content is anything.
  uint32_t Take();
  void Give(uint32_t number) { free_.push_back(number); }

  std::byte* At(uint32_t number) const {
    return slabs_[number >> shift_].data() + size_t{number & mask_} * block_bytes_;
  }
  size_t block_bytes() const { return block_bytes_; }
  // Numbers that were ever taken: all below it.
  uint32_t taken() const { return next_; }
  // Of all blocks that were ever taken.
  size_t bytes() const { return size_t{next_} * block_bytes_; }

 private:
  const size_t block_bytes_;
  unsigned shift_ = 0;  // a slab has 2^shift_ blocks
  uint32_t mask_ = 0;
  uint32_t next_ = 0;
  std::vector<Pages> slabs_;
  std::vector<uint32_t> free_;
};

}  // namespace edl::ps
