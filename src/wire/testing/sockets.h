#pragma once

#include <array>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/file.h"
#include "wire/socket.h"

namespace edl::wire {

// Two Unix sockets that are connected to each other.
inline std::array<FileDescriptor, 2> SocketPair() {
  std::array<int, 2> ends{};
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// The next connection, waited for.
inline FileDescriptor AcceptNext(const FileDescriptor& listener) {
  pollfd wait{.fd = listener.get(), .events = POLLIN};
  CHECK(poll(&wait, 1, 30'000) == 1, "nobody connects");
  return Accept(listener).value().value();
}

}  // namespace edl::wire
