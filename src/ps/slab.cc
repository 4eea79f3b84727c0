#include "ps/slab.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <sys/mman.h>

#include "base/check.h"

namespace edl::ps {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// The system gives memory when it is touched, so a table of few rows takes little of its slab.
constexpr size_t kSlabBytes = size_t{64} << 20;

size_t RoundedUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

size_t Pages::RoundedUp(size_t bytes) { return ps::RoundedUp(bytes, kHugePage); }

Pages::Pages(size_t bytes) : size_(RoundedUp(bytes)) {
  // A huge page begins at a multiple of its size, so a bit more is asked for and given back.
  const size_t asked = size_ + kHugePage;
  void* const got = mmap(nullptr, asked, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(got != MAP_FAILED, "no {} bytes of memory for rows", asked);
  auto* const begin = static_cast<std::byte*>(got);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t before = RoundedUp(address) - address;
  data_ = begin + before;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(data_ + size_, kHugePage - before);
  madvise(data_, size_, MADV_HUGEPAGE);
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, size_);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Slabs::Slabs(size_t block_bytes) : block_bytes_(block_bytes) {
  CHECK(block_bytes > 0 && block_bytes % 8 == 0, "blocks of {} bytes", block_bytes);
  const size_t blocks = std::bit_floor(std::max<size_t>(kSlabBytes / block_bytes, 1));
  shift_ = static_cast<unsigned>(std::countr_zero(blocks));
  mask_ = static_cast<uint32_t>(blocks - 1);
}

uint32_t Slabs::Take() {
  if (!free_.empty()) {
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  CHECK(next_ < kMost, "a lane has no numbers left for rows");
  if ((next_ >> shift_) == slabs_.size()) slabs_.emplace_back(block_bytes_ << shift_);
  return next_++;
}

}  // namespace edl::ps
