#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl {

// A network address as users write it.
struct HostPort {
  std::string host;  // an IPv6 address without brackets
  uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// Parses "host:port", with an IPv6 address in brackets: "[::1]:80". InvalidArgument: another form,
// or a port that is not a number from 1 to 65535.
Result<HostPort> ParseHostPort(std::string_view text);

}  // namespace edl
