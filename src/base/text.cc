#include "base/text.h"

#include <algorithm>

namespace edl {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view piece : Split(text, ',')) {
    if (const std::string_view trimmed = Trim(piece); !trimmed.empty()) out.emplace_back(trimmed);
  }
  return out;
}

std::string OneLine(std::string_view text, size_t most) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    std::string next(text.substr(at, end - at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '\n') {
      next = "\\n";
    } else if (byte == '\t') {
      next = "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      next = {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    if (out.size() + next.size() > most) break;
    out += next;
    at = end;
  }
  return out;
}

}  // namespace edl
