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

// A span for people: "0.4 s", "12 s", "3 min 05 s", "2 h 03 min".
std::string Span(double seconds);

// Seconds since 1970 as local "2026-01-31 12:00:00"; "" for 0.
std::string When(double seconds);

// Columns of words, as wide as they need to be.
std::string Columns(const std::vector<std::vector<std::string>>& rows);

enum class Color { kNone, kGood, kBad, kDim };
// `text` in a colour, or as it is where `use` is false.
std::string Colored(std::string_view text, Color color, bool use);

// How many characters `text` has.
size_t Width(std::string_view text);

// The first `width` characters of `text`, none of them cut in two.
std::string Cut(std::string_view text, size_t width);

// `text` without bytes that would move a terminal's cursor or change its state.
std::string EscapeControlChars(std::string_view text);

}  // namespace edl::cli
