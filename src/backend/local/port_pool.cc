#include "backend/local/port_pool.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

namespace edl::backend::local {
namespace {

constexpr PortRange kCandidates{10000, 65535};
constexpr uint32_t kCount = kCandidates.last - kCandidates.first + 1;
constexpr PortRange kDefaultEphemeral{32768, 60999};

// The part of the ephemeral range that is within the candidates.
PortRange Clipped(PortRange ephemeral) {
  return {std::max(ephemeral.first, kCandidates.first), std::min(ephemeral.last, kCandidates.last)};
}

uint32_t CountOutside(PortRange ephemeral) {
  return kCount - static_cast<uint32_t>(std::max(ephemeral.last - ephemeral.first + 1, 0));
}

// Whether a server could listen on `port` of all addresses now. Without SO_REUSEADDR, a port with
// closing connections is skipped; there are enough others.
bool IsFree(int family, int port) {
  const FileDescriptor probe(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return errno == EAFNOSUPPORT;
  sockaddr_storage address{};
  socklen_t length = 0;
  if (family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    length = sizeof(*v4);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    length = sizeof(*v6);
  }
  if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address), length) == 0) return true;
  return errno == EADDRNOTAVAIL;  // this machine has no address of this family
}

// The machine-wide lock of a port. AlreadyExists: another job holds it.
Result<FileDescriptor> Lock(int port) {
  FileDescriptor lock(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!lock.valid()) return Errno("making a socket to reserve TCP port {}", port);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  // An abstract name begins with a zero byte.
  const auto end = fmt::format_to_n(address.sun_path + 1, sizeof(address.sun_path) - 1,
                                    "elasticdl-port-{}", port);
  const auto length = static_cast<socklen_t>(end.out - reinterpret_cast<char*>(&address));
  if (bind(lock.get(), reinterpret_cast<sockaddr*>(&address), length) == 0) return lock;
  if (errno == EADDRINUSE) return AlreadyExists("another job has reserved TCP port {}", port);
  return Errno("reserving TCP port {} with the abstract Unix socket elasticdl-port-{}", port, port);
}

Result<FileDescriptor> BindLoopback(int port) {
  FileDescriptor bound(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!bound.valid()) return Errno("making a socket for TCP port {}", port);
  const int on = 1;
  setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return bound;
  return Errno("binding 127.0.0.1:{}", port);
}

}  // namespace

PortRange EphemeralPorts() {
  const Result<std::string> text = ReadFile("/proc/sys/net/ipv4/ip_local_port_range");
  PortRange range;
  if (!text.ok() || std::sscanf(text->c_str(), "%d %d", &range.first, &range.last) != 2) {
    return kDefaultEphemeral;
  }
  return range;
}

PortPool::PortPool(PortRange ephemeral, uint32_t seed)
    : ephemeral_(Clipped(ephemeral)), outside_(CountOutside(ephemeral_)), next_(seed) {}

int PortPool::Candidate(uint32_t n) const {
  const auto below = static_cast<uint32_t>(std::max(ephemeral_.first - kCandidates.first, 0));
  const auto place = static_cast<int>(n);
  if (n >= outside_) return ephemeral_.first + place - static_cast<int>(outside_);
  if (n < below) return kCandidates.first + place;
  return kCandidates.first + place + static_cast<int>(kCount - outside_);
}

Result<bool> PortPool::Take(int port) {
  Result<FileDescriptor> lock = Lock(port);
  if (lock.status().code() == Code::kAlreadyExists) return false;
  if (!lock.ok()) return lock.status();
  if (!IsFree(AF_INET, port) || !IsFree(AF_INET6, port)) return false;
  reserved_[port] = {.lock = *std::move(lock), .bound = FileDescriptor()};
  return true;
}

Result<int> PortPool::Reserve() {
  for (uint32_t tried = 0; tried < outside_; ++tried) {
    const int port = Candidate(next_++ % outside_);
    EDL_ASSIGN_OR_RETURN(const bool taken, Take(port));
    if (taken) return port;
  }
  LOG_WARNING(
      "no port is free outside the ephemeral range {}-{}: using one in it, which an outgoing "
      "connection may occupy",
      ephemeral_.first, ephemeral_.last);
  const uint32_t inside = kCount - outside_;
  for (uint32_t tried = 0; tried < inside; ++tried) {
    const int port = Candidate(outside_ + next_++ % inside);
    EDL_ASSIGN_OR_RETURN(const bool taken, Take(port));
    if (taken) return port;
  }
  return ResourceExhausted("no TCP port between {} and {} is free", kCandidates.first,
                           kCandidates.last);
}

Result<int> PortPool::ReserveAndBind() {
  // A server may start to listen between the test of a port and its binding.
  constexpr int kTries = 100;
  for (int tried = 0; tried < kTries; ++tried) {
    EDL_ASSIGN_OR_RETURN(const int port, Reserve());
    Result<FileDescriptor> bound = BindLoopback(port);
    if (bound.ok()) {
      reserved_[port].bound = *std::move(bound);
      return port;
    }
    Release(port);
  }
  return ResourceExhausted("{} free TCP ports were taken by other programs before they were bound",
                           kTries);
}

Status PortPool::ReserveAndBindPort(int port) {
  Result<FileDescriptor> lock = Lock(port);
  // With SO_REUSEADDR, connections that are closing do not count.
  Result<FileDescriptor> bound = lock.ok() ? BindLoopback(port) : lock.status();
  if (!bound.ok()) {
    return Unavailable(
        "cannot reserve TCP port {}: {}; end the program that uses it (`ss -ltnp 'sport = :{}'` "
        "shows it), or give another port",
        port, bound.status().message(), port);
  }
  reserved_[port] = {.lock = *std::move(lock), .bound = *std::move(bound)};
  return Ok();
}

}  // namespace edl::backend::local
