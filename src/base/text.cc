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

}  // namespace edl
