#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace edl::master {

// Makes this process's listening sockets on `port` notice within about two seconds that a peer's
// machine is gone: connections that are accepted from now on are probed by the kernel when nothing
// came for a second, and broken when the peer's kernel answers no more. A peer whose process is
// stopped, starved or busy does answer. Returns how many sockets there are.
int WatchPeersOf(int port);

// The user whose socket on this machine is the other end of `peer`, "ipv4:127.0.0.1:43210";
// nullopt: no such connection.
std::optional<uid_t> OwnerOf(std::string_view peer);

}  // namespace edl::master
