#include "kube/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace edl::kube {
namespace {

using nlohmann::ordered_json;

// The words of YAML 1.1, of which YAML 1.2 keeps only true, false and null.
constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};

template <typename Number>
std::optional<Number> ParseAll(std::string_view digits, int base) {
  Number number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// An integer with an optional sign and one of the prefixes 0x, 0o, 0 and 0b.
std::optional<ordered_json> ParseInteger(std::string_view text) {
  std::string sign = text.starts_with('-') ? "-" : "";
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
    const char prefix = text[0];
    if (prefix == 'x' || prefix == 'X') base = 16;
    if (prefix == 'b' || prefix == 'B') base = 2;
    if (base != 8 || prefix == 'o' || prefix == 'O') text.remove_prefix(1);
  }
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  if (auto number = ParseAll<int64_t>(sign + std::string(text), base)) return *number;
  if (!sign.empty()) return std::nullopt;
  if (auto number = ParseAll<uint64_t>(text, base)) return *number;
  return std::nullopt;
}

std::optional<ordered_json> ParseFloat(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const bool only_digits = std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || std::string_view("+-.eE").find(c) != std::string_view::npos;
  });
  if (!only_digits) return std::nullopt;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ordered_json> ReadPlainScalar(std::string_view text) {
  if (std::ranges::find(kNull, text) != kNull.end()) return ordered_json(nullptr);
  if (std::ranges::find(kTrue, text) != kTrue.end()) return ordered_json(true);
  if (std::ranges::find(kFalse, text) != kFalse.end()) return ordered_json(false);
  if (std::string_view("+-.0123456789").find(text.front()) == std::string_view::npos) {
    return std::nullopt;
  }
  std::string digits(text);
  std::erase(digits, '_');
  if (auto integer = ParseInteger(digits)) return integer;
  return ParseFloat(digits);
}

}  // namespace edl::kube
