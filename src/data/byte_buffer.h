#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace edl::data {

// Bytes that grow at the end. New bytes are not initialized, and large buffers grow without a copy
// (mremap). Confined.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept;
  ByteBuffer& operator=(ByteBuffer&& other) noexcept;

  // Adds bytes, and returns where the added bytes begin. Throws std::bad_alloc.
  char* Extend(size_t bytes);
  void Append(std::string_view bytes);
  // Keeps the memory. REQUIRES for Truncate: at most size().
  void Truncate(size_t bytes) { size_ = bytes; }
  void Clear() { size_ = 0; }
  // Removes bytes from the front. REQUIRES: at most size().
  void RemovePrefix(size_t bytes);

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }  // NOLINT: from realloc
  };

  void Grow(size_t capacity);

  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace edl::data
