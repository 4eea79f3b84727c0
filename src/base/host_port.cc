#include "base/host_port.h"

#include <charconv>

namespace edl {

Result<HostPort> ParseHostPort(std::string_view text) {
  const auto error = [&] {
    return InvalidArgument(
        "'{}' is not host:port with a port from 1 to 65535; an IPv6 address is in brackets: "
        "[::1]:80",
        text);
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return error();
  }
  if (host.empty() || host.find_first_of("[] \t\r\n") != std::string_view::npos) return error();
  HostPort out{.host = std::string(host)};
  const char* const end = digits.data() + digits.size();
  const auto [at, failure] = std::from_chars(digits.data(), end, out.port);
  if (failure != std::errc() || at != end || out.port == 0) return error();
  return out;
}

}  // namespace edl
