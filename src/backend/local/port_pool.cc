#include "backend/local/port_pool.h"

#include <cstdio>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

namespace edl::backend::local {
namespace {

constexpr PortRange kCandidates{10000, 65535};
constexpr PortRange kDefaultEphemeral{32768, 60999};

// Whether a server could listen on `port` of all addresses now. Without SO_REUSEADDR: a port with
// connections still closing is passed over, there are enough others.
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
  return errno == EADDRNOTAVAIL;  // no address of this family here
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

Result<PortPool> PortPool::Open(const std::filesystem::path& ports_dir, PortRange ephemeral,
                                uint32_t seed) {
  std::error_code error;
  std::filesystem::create_directories(ports_dir, error);
  if (error) {
    return StatusFromErrno(error.value(), "creating the folder of ports " + ports_dir.string());
  }
  const std::filesystem::path path = ports_dir / "locks";
  FileDescriptor locks(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!locks.valid()) return Errno("opening {}", path.string());
  return PortPool(std::move(locks), ephemeral, seed);
}

bool PortPool::Take(int port) {
  if (mine_.contains(port)) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = port;
  lock.l_len = 1;
  if (fcntl(locks_.get(), F_OFD_SETLK, &lock) != 0) return false;
  if (IsFree(AF_INET, port) && IsFree(AF_INET6, port)) {
    mine_.insert(port);
    return true;
  }
  lock.l_type = F_UNLCK;
  fcntl(locks_.get(), F_OFD_SETLK, &lock);
  return false;
}

Result<int> PortPool::Reserve() {
  constexpr int kCount = kCandidates.last - kCandidates.first + 1;
  for (const bool outside_ephemeral : {true, false}) {
    if (!outside_ephemeral) {
      LOG_WARNING(
          "no port is free outside of the ephemeral range {}-{}: taking one within it, which "
          "an outgoing connection may occupy",
          ephemeral_.first, ephemeral_.last);
    }
    for (int tried = 0; tried < kCount; ++tried) {
      const int port = kCandidates.first + static_cast<int>(next_++ % kCount);
      if (ephemeral_.Contains(port) == outside_ephemeral) continue;
      if (Take(port)) return port;
    }
  }
  return ResourceExhausted("no TCP port between {} and {} is free", kCandidates.first,
                           kCandidates.last);
}

}  // namespace edl::backend::local
