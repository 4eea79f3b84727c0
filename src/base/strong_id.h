#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include <fmt/format.h>

namespace edl {

// A number of its own type, so that ids of different kinds cannot be mixed up:
//   using LeaseId = StrongId<struct LeaseIdTag, uint64_t>;
template <typename Tag, typename Number = uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Number value) : value_(value) {}
  constexpr Number value() const { return value_; }
  // The id that follows this one, for ids that are counted.
  constexpr StrongId Next() const { return StrongId(value_ + 1); }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Number value_{};
};

}  // namespace edl

template <typename Tag, typename Number>
struct std::hash<edl::StrongId<Tag, Number>> {
  size_t operator()(edl::StrongId<Tag, Number> id) const { return std::hash<Number>()(id.value()); }
};

template <typename Tag, typename Number>
struct fmt::formatter<edl::StrongId<Tag, Number>> : fmt::formatter<Number> {
  auto format(edl::StrongId<Tag, Number> id, fmt::format_context& context) const {
    return fmt::formatter<Number>::format(id.value(), context);
  }
};
