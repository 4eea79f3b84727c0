#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace edl::master {

// Makes this process notice within about two seconds that the machine of a peer is lost. Sets TCP
// keepalive on the process's listening sockets on `port`: connections accepted from now on are
// probed after a second without data, and closed when the peer's kernel does not answer. A process
// that is stopped, starved or busy does not matter, because its kernel answers. Returns the number
// of listening sockets.
int WatchPeersOf(int port);

// The user who owns the socket of `peer` on this machine, "ipv4:127.0.0.1:43210". nullopt: there is
// no such connection.
std::optional<uid_t> OwnerOf(std::string_view peer);

}  // namespace edl::master
