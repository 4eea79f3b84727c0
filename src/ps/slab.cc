#include "ps/slab.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include <sys/mman.h>

#include "base/check.h"
#include "base/mutex.h"

namespace edl::ps {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCacheLine = 64;
// The kernel allocates a page when it is first touched, so an empty slab costs nothing.
constexpr size_t kSlabBytes = size_t{64} << 20;
// The first allocation of a small table. It is doubled as needed.
constexpr size_t kLeastBytes = 256;

size_t RoundedUpTo(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Maps memory that starts at a multiple of a huge page. Null: the system has none left.
std::byte* MapAligned(size_t bytes) {
  // Map one huge page more, and unmap what lies before and after the aligned range.
  void* const got = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(got);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t before = RoundedUpTo(address, kHugePage) - address;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

// Reserves address space in large ranges and cuts slabs from them: a process may have only 65,530
// mappings, and a slab that is mapped by itself needs one. A range costs nothing before it is
// touched, and is never unmapped. Thread-safe.
class AddressSpace {
 public:
  // Returns zeroed memory that starts at a multiple of a huge page. Null: the system has none left.
  // REQUIRES: `bytes` is a multiple of a huge page.
  std::byte* Take(size_t bytes) {
    const MutexLock lock(mutex_);
    if (std::vector<std::byte*>& free = free_[bytes]; !free.empty()) {
      std::byte* const memory = free.back();
      free.pop_back();
      return memory;
    }
    if (bytes > left_) {
      std::byte* const range = bytes < kRange ? MapAligned(kRange) : nullptr;
      // A system that cannot reserve a whole range may still map this much.
      if (range == nullptr) return MapAligned(bytes);
      next_ = range;
      left_ = kRange;
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }
  // Returns the pages to the system and keeps the address range for the next Take().
  void Give(std::byte* memory, size_t bytes) {
    madvise(memory, bytes, MADV_DONTNEED);
    const MutexLock lock(mutex_);
    free_[bytes].push_back(memory);
  }

 private:
  static constexpr size_t kRange = size_t{4} << 30;

  Mutex mutex_;
  std::map<size_t, std::vector<std::byte*>> free_ GUARDED_BY(mutex_);  // by size
  std::byte* next_ GUARDED_BY(mutex_) = nullptr;
  size_t left_ GUARDED_BY(mutex_) = 0;
};

AddressSpace& Addresses() {
  static auto* const space = new AddressSpace;  // NOLINT: tables may outlive a static object
  return *space;
}

}  // namespace

size_t Pages::RoundedUp(size_t bytes) {
  const size_t lines = RoundedUpTo(bytes, kCacheLine);
  return lines < kLarge ? lines : RoundedUpTo(bytes, kHugePage);
}

Result<Pages> Pages::Make(size_t bytes) {
  Pages pages;
  const size_t size = RoundedUp(bytes);
  if (size < kLarge) {
    pages.data_ = static_cast<std::byte*>(std::aligned_alloc(kCacheLine, size));
    if (pages.data_ != nullptr) std::memset(pages.data_, 0, size);
  } else {
    pages.data_ = Addresses().Take(size);
  }
  if (pages.data_ == nullptr) {
    return ResourceExhausted("cannot allocate {} bytes for rows: the system has no memory left",
                             size);
  }
  pages.size_ = size;
  return pages;
}

Pages::~Pages() {
  if (data_ == nullptr) return;
  if (size_ < kLarge) {
    std::free(data_);  // NOLINT: from std::aligned_alloc
  } else {
    Addresses().Give(data_, size_);
  }
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Slabs::Slabs(size_t block_bytes, size_t most)
    : block_bytes_(block_bytes), most_(std::min<size_t>(most, kMost)) {
  CHECK(block_bytes > 0 && block_bytes % 8 == 0, "block size {} is not a positive multiple of 8",
        block_bytes);
  const size_t blocks = std::bit_floor(std::max<size_t>(kSlabBytes / block_bytes, 1));
  shift_ = static_cast<unsigned>(std::countr_zero(blocks));
  mask_ = static_cast<uint32_t>(blocks - 1);
}

Status Slabs::Reserve(size_t blocks) {
  if (blocks <= free_.size()) return Ok();
  // A bounded table evicts rows before it takes more than most_ blocks.
  const size_t wanted = std::min(next_ + (blocks - free_.size()), std::max<size_t>(most_, next_));
  if (next_ + (blocks - free_.size()) > kMost) {
    return ResourceExhausted(
        "a lane holds at most {} rows of a table: it has {}, and {} more are needed", kMost, next_,
        blocks);
  }
  return wanted <= room_ ? Ok() : Grow(wanted);
}

Status Slabs::Grow(size_t blocks) {
  const size_t in_slab = size_t{mask_} + 1;
  // The largest number of blocks that fit into a heap allocation.
  const size_t few = std::min((Pages::kLarge - kCacheLine) / block_bytes_, in_slab);
  if (slabs_.size() <= 1 && blocks <= few) {
    const size_t doubled = std::max(2 * room_, kLeastBytes / block_bytes_);
    const size_t room = std::min({std::max(blocks, doubled), few, std::max(most_, blocks)});
    EDL_ASSIGN_OR_RETURN(Pages pages, Pages::Make(room * block_bytes_));
    if (next_ > 0) std::memcpy(pages.data(), slabs_[0].data(), next_ * block_bytes_);
    slabs_.resize(1);
    slabs_[0] = std::move(pages);
    room_ = room;
    return Ok();
  }
  while (room_ < blocks) {
    EDL_ASSIGN_OR_RETURN(Pages pages, Pages::Make(block_bytes_ << shift_));
    if (room_ % in_slab == 0) {
      slabs_.push_back(std::move(pages));
    } else {  // the heap allocation becomes the first slab
      std::memcpy(pages.data(), slabs_[0].data(), next_ * block_bytes_);
      slabs_[0] = std::move(pages);
    }
    room_ = slabs_.size() * in_slab;
  }
  return Ok();
}

uint32_t Slabs::Take() {
  if (!free_.empty()) {
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  CHECK(next_ < room_, "Take() without Reserve(): all {} blocks are in use", room_);
  return next_++;
}

size_t Slabs::bytes() const {
  const size_t used = size_t{next_} * block_bytes_;
  const bool few = slabs_.size() == 1 && slabs_[0].size() < Pages::kLarge;
  return few ? slabs_[0].size() : used;
}

size_t Slabs::MostBytes(size_t block_bytes, size_t blocks) {
  return Pages::RoundedUp(block_bytes * blocks);
}

}  // namespace edl::ps
