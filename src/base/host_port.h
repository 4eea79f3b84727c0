#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// An address as users write it.
struct HostPort {
  std::string host;  // an address of IPv6 without its brackets
  uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// Reads "host:port"; an address of IPv6 is in brackets: "[::1]:80". InvalidArgument: anything else,
// and a port that is not a number from 1 to 65535.
Result<HostPort> ParseHostPort(std::string_view text);

}  // namespace edl
