#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace edl::cli {

// 1234567 as "1,234,567".
std::string Count(int64_t number);

// "1 worker", "3 workers".
std::string Plural(int64_t number, std::string_view one, std::string_view many);

// A duration to show: "0.4 s", "12 s", "3 min 05 s", "2 h 03 min".
std::string Span(double seconds);

// Seconds since 1970 as local "2026-01-31 12:00:00"; "" for 0.
std::string When(double seconds);

// Rows of words as left-aligned columns, each as wide as its longest word.
std::string Columns(const std::vector<std::vector<std::string>>& rows);

enum class Color { kNone, kGood, kBad, kDim };
enum class UseColor { kNo, kYes };
// `text` between the escape sequences of `color`; unchanged with UseColor::kNo.
std::string Colored(std::string_view text, Color color, UseColor use_color);

// The number of UTF-8 characters in `text`.
size_t Width(std::string_view text);

// The first `width` UTF-8 characters of `text`.
std::string Cut(std::string_view text, size_t width);

// `text` with control characters escaped, which would move a terminal's cursor or change its state.
std::string EscapeControlChars(std::string_view text);

}  // namespace edl::cli
