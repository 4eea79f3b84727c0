#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace edl {

// Prints the place, the condition and the message, then aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

template <typename... Args>
std::string CheckMessage(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
inline std::string CheckMessage() { return {}; }

}  // namespace edl

// Aborts the process if an invariant does not hold, and prints the message. Never for input.
#define CHECK(condition, ...)                                                               \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      ::edl::CheckFailed(__FILE__, __LINE__, #condition, ::edl::CheckMessage(__VA_ARGS__)); \
    }                                                                                       \
  } while (false)
