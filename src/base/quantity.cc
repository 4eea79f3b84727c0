#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace edl {
namespace {

struct Suffix {
  std::string_view name;
  double factor;
};
constexpr double kKi = 1024;
constexpr std::array<Suffix, 16> kSuffixes = {{{"", 1},
                                               {"n", 1e-9},
                                               {"u", 1e-6},
                                               {"m", 1e-3},
                                               {"k", 1e3},
                                               {"M", 1e6},
                                               {"G", 1e9},
                                               {"T", 1e12},
                                               {"P", 1e15},
                                               {"E", 1e18},
                                               {"Ki", kKi},
                                               {"Mi", kKi* kKi},
                                               {"Gi", kKi* kKi* kKi},
                                               {"Ti", kKi* kKi* kKi* kKi},
                                               {"Pi", kKi* kKi* kKi* kKi* kKi},
                                               {"Ei", kKi* kKi* kKi* kKi* kKi* kKi}}};

// Factors of 1 and more are whole numbers, which doubles represent exactly.
std::optional<double> FactorOf(std::string_view suffix) {
  for (const Suffix& known : kSuffixes) {
    if (known.name == suffix) return known.factor;
  }
  return std::nullopt;
}

constexpr double kMost =
    9007199254740992.0;          // 2^53: doubles represent all whole numbers up to here
constexpr double kNoise = 1e-6;  // rounding error of decimal fractions

}  // namespace

Result<int64_t> ParseQuantity(std::string_view text) {
  double number = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  const std::string_view suffix(stop, static_cast<size_t>(end - stop));
  const std::optional<double> factor = FactorOf(suffix);
  if (error != std::errc() || !std::isfinite(number) || !factor) {
    return InvalidArgument("'{}' is not a quantity such as 250m, 1.5 or 16Gi", text);
  }
  const double thousandths = std::ceil(number * *factor * 1000 - kNoise);
  return static_cast<int64_t>(std::clamp(thousandths, -kMost, kMost));
}

Result<int64_t> ParseByteCount(std::string_view text) {
  if (text.empty()) return InvalidArgument("expected a number of bytes such as 4096Mi");
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return InvalidArgument("'{}' is too large", text);
  if (error != std::errc() || text.front() == '0' || number <= 0) {
    return InvalidArgument("'{}' is not a positive whole number with a unit, such as 4096Mi", text);
  }
  const std::string_view suffix(stop, static_cast<size_t>(end - stop));
  // Users write K; Kubernetes writes k.
  const std::optional<double> factor =
      suffix == "k" ? std::nullopt : FactorOf(suffix == "K" ? "k" : suffix);
  if (!factor || *factor <= 1) {
    return InvalidArgument("'{}' needs one of the units K, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei",
                           text);
  }
  const auto bytes = static_cast<int64_t>(*factor);
  if (number > std::numeric_limits<int64_t>::max() / bytes) {
    return InvalidArgument("'{}' is too large", text);
  }
  return number * bytes;
}

std::string ShowQuantity(int64_t thousandths, QuantityUnit unit) {
  const double number = static_cast<double>(thousandths) / 1000;
  if (unit == QuantityUnit::kOne) return fmt::format("{:g}", std::round(number * 100) / 100);
  for (size_t i = kSuffixes.size() - 1; kSuffixes.at(i).name.ends_with('i'); --i) {
    const Suffix& suffix = kSuffixes.at(i);
    if (std::abs(number) < suffix.factor) continue;
    return fmt::format("{:g}{}", std::round(number / suffix.factor * 10) / 10, suffix.name);
  }
  return fmt::format("{:g}", number);
}

}  // namespace edl
