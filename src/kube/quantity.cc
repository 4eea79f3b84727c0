#include "kube/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace edl::kube {
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

constexpr double kMost = 9007199254740992.0;  // 2^53: up to here every whole number is a double
constexpr double kNoise = 1e-6;               // of decimal fractions in binary

}  // namespace

Result<int64_t> ParseQuantity(std::string_view text) {
  double number = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  const std::string_view suffix(stop, static_cast<size_t>(end - stop));
  for (const Suffix& known : kSuffixes) {
    if (error != std::errc() || !std::isfinite(number) || known.name != suffix) continue;
    const double thousandths = std::ceil(number * known.factor * 1000 - kNoise);
    return static_cast<int64_t>(std::clamp(thousandths, -kMost, kMost));
  }
  return InvalidArgument("'{}' is no amount such as 250m, 1.5 or 16Gi", text);
}

std::string ShowQuantity(int64_t thousandths, Unit unit) {
  const double number = static_cast<double>(thousandths) / 1000;
  if (unit == Unit::kOne) return fmt::format("{:g}", std::round(number * 100) / 100);
  for (size_t i = kSuffixes.size() - 1; kSuffixes.at(i).name.ends_with('i'); --i) {
    const Suffix& suffix = kSuffixes.at(i);
    if (std::abs(number) < suffix.factor) continue;
    return fmt::format("{:g}{}", std::round(number / suffix.factor * 10) / 10, suffix.name);
  }
  return fmt::format("{:g}", number);
}

}  // namespace edl::kube
