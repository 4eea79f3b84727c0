#include "kube/text.h"

#include <cctype>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

namespace edl::kube {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::tm Parts(WallTime time) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

// Removes a fraction (".123") from the front of `text` and returns it. Digits after the ninth are
// ignored.
Duration TakeFraction(std::string_view& text) {
  if (!text.starts_with('.')) return Duration(0);
  text.remove_prefix(1);
  int64_t nanoseconds = 0;
  for (int64_t unit = 100'000'000; !text.empty() && IsDigit(text.front()); unit /= 10) {
    nanoseconds += unit * (text.front() - '0');
    text.remove_prefix(1);
  }
  return Duration(nanoseconds);
}

// "Z", or "+01:30".
std::optional<Duration> ParseOffset(std::string_view text) {
  if (text == "Z") return Duration(0);
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  for (const size_t at : {1, 2, 4, 5}) {
    if (!IsDigit(text[at])) return std::nullopt;
  }
  const std::chrono::minutes offset(((text[1] - '0') * 10 + (text[2] - '0')) * 60 +
                                    (text[4] - '0') * 10 + (text[5] - '0'));
  return text[0] == '-' ? -offset : offset;
}

}  // namespace

std::string UrlEncoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~');
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::optional<WallTime> ParseTime(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  // Only years that 64 bits of nanoseconds can represent.
  if (end == nullptr || parts.tm_year < 0 || parts.tm_year > 300) return std::nullopt;
  std::string_view rest(end);
  const Duration fraction = TakeFraction(rest);
  const std::optional<Duration> offset = ParseOffset(rest);
  if (!offset) return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&parts))) + fraction - *offset;
}

std::string FormatTime(WallTime time) {
  const std::tm parts = Parts(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string FormatMicroTime(WallTime time) {
  const auto part = std::chrono::floor<std::chrono::microseconds>(time) -
                    std::chrono::floor<std::chrono::seconds>(time);
  std::string text = FormatTime(time);
  text.insert(text.size() - 1, fmt::format(".{:06}", part.count()));
  return text;
}

}  // namespace edl::kube
