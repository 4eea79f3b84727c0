#include "data/byte_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace edl::data {

ByteBuffer::ByteBuffer(ByteBuffer&& other) noexcept
    : data_(std::move(other.data_)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

ByteBuffer& ByteBuffer::operator=(ByteBuffer&& other) noexcept {
  data_ = std::move(other.data_);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

void ByteBuffer::Grow(size_t capacity) {
  void* const grown = std::realloc(data_.get(), capacity);  // NOLINT: does not copy large buffers
  if (grown == nullptr) throw std::bad_alloc();
  static_cast<void>(data_.release());
  data_.reset(static_cast<char*>(grown));
  capacity_ = capacity;
}

char* ByteBuffer::Extend(size_t bytes) {
  if (bytes > capacity_ - size_) {
    constexpr size_t kLeast = 256;
    Grow(std::max({size_ + bytes, capacity_ + capacity_ / 2, kLeast}));
  }
  char* const added = data_.get() + size_;
  size_ += bytes;
  return added;
}

void ByteBuffer::Append(std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(Extend(bytes.size()), bytes.data(), bytes.size());
}

void ByteBuffer::RemovePrefix(size_t bytes) {
  size_ -= bytes;
  if (bytes > 0 && size_ > 0) std::memmove(data_.get(), data_.get() + bytes, size_);
}

}  // namespace edl::data
