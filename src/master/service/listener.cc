#include "master/service/listener.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace edl::master {
namespace {

constexpr int kIdleSeconds = 1;
constexpr int kProbeEverySeconds = 1;
// The time without an answer of the peer's kernel, to a probe or to data, after which a connection
// is closed. Two probes in a row have to be lost, because of thousands that are sent each second
// some are. The kernel checks once a second.
constexpr int kUnansweredMs = 2500;

bool ListensOn(int fd, int port) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return false;
  sockaddr_storage address{};
  size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port) == port;
  }
  return address.ss_family == AF_INET6 &&
         ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port) == port;
}

void Set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

// An address as in /proc/net/tcp: 32-bit words in the byte order of this machine.
template <size_t kWords>
std::string HexOf(const std::array<uint32_t, kWords>& words) {
  std::string text;
  for (const uint32_t word : words) text += fmt::format("{:08X}", word);
  return text;
}

std::optional<uid_t> FindOwner(const char* table, const std::string& local) {
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    // "  0: 0100007F:A8CA 0100007F:C351 01 00000000:00000000 00:00000000 00000000  1000 ..."
    const size_t at = line.find(": ");
    if (at == std::string::npos || line.compare(at + 2, local.size(), local) != 0) continue;
    std::array<char, 64> remote{};
    unsigned state = 0;
    unsigned uid = 0;
    if (std::sscanf(line.c_str() + at + 2 + local.size(), " %63s %x %*s %*s %*s %u", remote.data(),
                    &state, &uid) != 3) {
      continue;
    }
    constexpr unsigned kEstablished = 1;
    if (state == kEstablished) return uid;
  }
  return std::nullopt;
}

}  // namespace

int WatchPeersOf(int port) {
  int found = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int fd = -1;
    const std::string name = entry.path().filename().string();
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd < 0 || !ListensOn(fd, port)) continue;
    // Accepted sockets inherit the options of their listener.
    Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
    Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeEverySeconds);
    Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
    ++found;
  }
  return found;
}

std::optional<uid_t> OwnerOf(std::string_view peer) {
  const size_t colon = peer.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  unsigned port = 0;
  const std::string_view number = peer.substr(colon + 1);
  std::from_chars(number.data(), number.data() + number.size(), port);
  std::string host(peer.substr(0, colon));
  const bool ipv4 = host.starts_with("ipv4:");
  if (!ipv4 && !host.starts_with("ipv6:")) return std::nullopt;
  host.erase(0, 5);
  if (ipv4) {
    std::array<uint32_t, 1> address{};
    if (inet_pton(AF_INET, host.c_str(), address.data()) != 1) return std::nullopt;
    if (const auto uid =
            FindOwner("/proc/net/tcp", fmt::format("{}:{:04X} ", HexOf(address), port))) {
      return uid;
    }
    // The peer may use an IPv6 socket with a mapped IPv4 address.
    const std::array<uint32_t, 4> mapped = {0, 0, htonl(0xffff), address[0]};
    return FindOwner("/proc/net/tcp6", fmt::format("{}:{:04X} ", HexOf(mapped), port));
  }
  for (const char* bracket : {"%5B", "%5D", "[", "]"}) {
    if (const size_t at = host.find(bracket); at != std::string::npos) {
      host.erase(at, std::strlen(bracket));
    }
  }
  std::array<uint32_t, 4> address{};
  if (inet_pton(AF_INET6, host.c_str(), address.data()) != 1) return std::nullopt;
  return FindOwner("/proc/net/tcp6", fmt::format("{}:{:04X} ", HexOf(address), port));
}

}  // namespace edl::master
