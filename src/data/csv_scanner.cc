#include "data/csv_scanner.h"

#include <algorithm>

namespace edl::data {
namespace {

constexpr char kQuote = '"';

// Where the quoted field that begins at `at` ends: behind its closing quote. npos: not in `text`.
// A quote at the end of `text` closes the field only if nothing follows (`is_rest`).
size_t EndOfQuoted(std::string_view text, size_t at, bool is_rest) {
  size_t quote = text.find(kQuote, at + 1);
  while (quote != std::string_view::npos) {
    if (quote + 1 == text.size()) return is_rest ? text.size() : std::string_view::npos;
    if (text[quote + 1] != kQuote) return quote + 1;
    quote = text.find(kQuote, quote + 2);
  }
  return std::string_view::npos;
}

}  // namespace

void CsvScanner::Seek(uint64_t offset) {
  // Offsets before the old position were not searched for quotes, or are no longer remembered.
  unquoted_until_ = offset;
  scanner_.Seek(offset);
}

size_t CsvScanner::QuotedLineLength(std::string_view window, bool is_rest) const {
  size_t at = 0;
  while (at < window.size()) {
    if (window[at] == kQuote) {
      at = EndOfQuoted(window, at, is_rest);
      if (at == std::string_view::npos) return 0;
    }
    while (at < window.size() && window[at] != separator_ && window[at] != '\n') ++at;
    if (at == window.size()) break;
    ++at;
    if (window[at - 1] == '\n') return at;
  }
  return is_rest ? window.size() : 0;
}

size_t CsvScanner::LineLength(std::string_view window, bool is_rest) {
  const size_t newline = window.find('\n');
  const size_t length = newline == std::string_view::npos ? window.size() : newline + 1;
  if (scanner_.position() + length > unquoted_until_) {
    const size_t quote = window.find(kQuote);
    unquoted_until_ = scanner_.position() + std::min(quote, window.size());
    if (quote < length) return QuotedLineLength(window, is_rest);
  }
  return newline == std::string_view::npos && !is_rest ? 0 : length;
}

Status CsvScanner::NeedMore(std::string_view window) {
  if (window.size() == scanner_.left()) {
    return file_.Damaged(scanner_.position(),
                         "a quoted field of the line that begins here is not closed before the end "
                         "of the file");
  }
  if (window.size() > kMostLineBytes) {
    return file_.Damaged(scanner_.position(),
                         "the line that begins here has more than {} bytes; is a quote not closed?",
                         kMostLineBytes);
  }
  return scanner_.Need(2 * window.size() + 1);
}

Result<bool> CsvScanner::Next(std::string_view& line, uint64_t& offset) {
  while (scanner_.left() > 0) {
    const std::string_view window = scanner_.window();
    const size_t length = window.empty() ? 0 : LineLength(window, window.size() == scanner_.left());
    if (length == 0) {
      EDL_RETURN_IF_ERROR(NeedMore(window));
      continue;
    }
    offset = scanner_.position();
    line = window.substr(0, length);
    scanner_.Skip(length);
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) return true;
  }
  return false;
}

std::vector<std::string> SplitCsvLine(std::string_view line, char separator) {
  std::vector<std::string> fields;
  size_t at = 0;
  while (true) {
    std::string field;
    if (at < line.size() && line[at] == kQuote) {
      const size_t end = std::min(EndOfQuoted(line, at, true), line.size());
      for (size_t i = at + 1; i + 1 < end; ++i) {
        field += line[i];
        if (line[i] == kQuote) ++i;
      }
      at = end;
    }
    const size_t end = std::min(line.find(separator, at), line.size());
    field += line.substr(at, end - at);
    fields.push_back(std::move(field));
    if (end == line.size()) return fields;
    at = end + 1;
  }
}

}  // namespace edl::data
