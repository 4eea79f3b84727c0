#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/strong_id.h"

namespace edl::wire {

// What can be one number of a meta part: an arithmetic type, or a StrongId, which is written as its
// integer.
template <typename T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T>;
template <typename Tag, typename Number>
inline constexpr bool kIsNumber<StrongId<Tag, Number>> = sizeof(StrongId<Tag, Number>) ==
                                                         sizeof(Number);

// Writes the meta part of a frame: numbers are little-endian and not padded; a text is its length
// in 32 bits, then its bytes. Confined.
class MetaWriter {
 public:
  template <typename Number>
  void Add(Number number) {
    static_assert(kIsNumber<Number>);
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

// Reads a meta part from bytes that are not trusted. After the first read past the end, ok() is
// false and everything that it returns is zero or empty. Confined.
class MetaReader {
 public:
  explicit MetaReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename Number>
  Number Get() {
    static_assert(kIsNumber<Number>);
    Number number{};
    const std::span<const std::byte> bytes = Take(sizeof(number));
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }
  // Points into the bytes that were passed to the constructor.
  std::string_view GetText() {
    const std::span<const std::byte> bytes = Take(Get<uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }
  // Whether the bytes were read exactly to their end.
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
