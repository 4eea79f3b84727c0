#include "tfjob_convert/comments.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

// The column of the key of "  - key: |", or of the last dash of "  - |". The lines of a block
// scalar are indented further.
size_t IndentOf(std::string_view line) {
  size_t at = std::min(line.find_first_not_of(' '), line.size());
  while (line.substr(at, 2) == "- ") {
    const size_t next = std::min(line.find_first_not_of(' ', at + 1), line.size());
    if (next == line.size() || line[next] == '|' || line[next] == '>') break;
    at = next;
  }
  return at;
}

// Whether the line ends with the header of a block scalar, such as "|" or ">-".
bool OpensBlock(std::string_view line) {
  line = Trim(line);
  while (!line.empty() &&
         std::string_view("+-123456789").find(line.back()) != std::string_view::npos) {
    line.remove_suffix(1);
  }
  if (!line.ends_with('|') && !line.ends_with('>')) return false;
  line.remove_suffix(1);
  return line.empty() || line.ends_with(' ');
}

// The position of a comment in a line. `quote` is the quote that is open at the beginning, 0 if
// there is none, and afterwards that at the end.
size_t CommentIn(std::string_view line, char& quote) {
  char before = ' ';
  for (size_t i = 0; i < line.size(); before = line[i++]) {
    const char c = line[i];
    if (quote != 0) {
      if (quote == '"' && c == '\\') ++i;
      if (c == quote) quote = 0;
      if (i >= line.size()) break;
    } else if ((c == '"' || c == '\'') &&
               std::string_view(" [{,:").find(before) != std::string_view::npos) {
      quote = c;
    } else if (c == '#' && (before == ' ' || before == '\t')) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool HasComment(std::string_view yaml) {
  std::optional<size_t> block;  // the indentation of the line with the header
  char quote = 0;
  for (const std::string_view line : Split(yaml, '\n')) {
    if (Trim(line).empty()) continue;
    if (block.has_value()) {
      if (line.find_first_not_of(' ') > *block) continue;
      block.reset();
    }
    if (CommentIn(line, quote) != std::string_view::npos) return true;
    if (quote == 0 && OpensBlock(line)) block = IndentOf(line);
  }
  return false;
}

}  // namespace edl::tfjob_convert
