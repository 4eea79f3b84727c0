#include "base/base64.h"

#include <array>
#include <cstdint>

namespace edl {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  size_t count = 0;  // characters, padding included
  size_t padding = 0;
  for (const char c : text) {
    if (IsSpace(c)) continue;
    ++count;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0) {
      return InvalidArgument("character {} is not a base64 character", count);
    }
    bits = (bits << 6) | static_cast<uint32_t>(value);
    if (count % 4 != 1) {
      const size_t left = 2 * (3 - (count - 1) % 4);  // bits that belong to the next byte
      out.push_back(static_cast<char>((bits >> left) & 0xff));
    }
  }
  if (count % 4 != 0 || padding > 2)
    return InvalidArgument("the base64 text is incomplete: its length must be a multiple of 4");
  return out;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t here = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = (bits << 8) | (i < here ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out.push_back(i <= here ? kAlphabet[(bits >> (18 - 6 * i)) & 63] : '=');
    }
  }
  return out;
}

}  // namespace edl
