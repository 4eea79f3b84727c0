#include "cli/format.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/chrono.h>

namespace edl::cli {
namespace {

// True for the second to fourth byte of a UTF-8 character.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

std::string Count(int64_t number) {
  std::string digits = std::to_string(number);
  const ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto place = static_cast<ptrdiff_t>(digits.size()) - 3; place > first; place -= 3) {
    digits.insert(static_cast<size_t>(place), ",");
  }
  return digits;
}

std::string Plural(int64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", Count(number), number == 1 ? one : many);
}

std::string Span(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(std::min(seconds, 3.15e11)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < int64_t{48} * 3600)
    return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} days", whole / 86400);
}

std::string When(double seconds) {
  if (seconds <= 0 || seconds > 1e11) return "";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

std::string Columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] + 2 - Width(row[i]), ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string Colored(std::string_view text, Color color, UseColor use_color) {
  if (use_color == UseColor::kNo || color == Color::kNone) return std::string(text);
  const int code = color == Color::kGood ? 32 : color == Color::kBad ? 31 : 2;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string Cut(std::string_view text, size_t width) {
  if (Width(text) <= width) return std::string(text);
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    if (!Continues(text[end]) && seen++ == width) break;
  }
  return std::string(text.substr(0, end));
}

std::string EscapeControlChars(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      out += ' ';
    } else if (byte >= 0x20 && byte != 0x7F) {
      out += c;
    }
  }
  return out;
}

}  // namespace edl::cli
