#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace edl::wire {

// Writes the meta part of a frame: numbers little-endian, one after the other, unpadded; a text is
// its length in 32 bits and its bytes. Confined.
class MetaWriter {
 public:
  template <typename Number>
  void Add(Number number) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void AddText(std::string_view text) {
    Add(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }

  std::string text() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what a MetaWriter wrote, of bytes that may be anything. After the first read past the end
// all that it gives is zero and empty, and ok() is false. Confined.
class MetaReader {
 public:
  explicit MetaReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename Number>
  Number Get() {
    static_assert(std::is_arithmetic_v<Number>);
    Number number{};
    const std::span<const std::byte> bytes = Take(sizeof(number));
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }
  // Lies in the bytes that are read.
  std::string_view GetText() {
    const std::span<const std::byte> bytes = Take(Get<uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }
  // Whether all was there, and nothing more.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> Take(size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::span<const std::byte> taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace edl::wire
