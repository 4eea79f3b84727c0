#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace edl {

// `text` without leading and trailing white space. Always a view into `text`.
std::string_view Trim(std::string_view text);

// The pieces between separators, also empty ones: one more than there are separators.
std::vector<std::string_view> Split(std::string_view text, char separator);

// The pieces of a list "a, b", trimmed and without empty ones.
std::vector<std::string> SplitList(std::string_view text);

// `text` on one line: control characters are written as \n, \t or \x1b. At most `most` bytes; a cut
// is between UTF-8 characters.
std::string OneLine(std::string_view text, size_t most);

// The bytes of `text`, which outlives them.
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace edl
