#include "wire/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace edl::wire {
namespace {

constexpr int kWaitingConnections = 512;
constexpr int kSocketFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

std::string Endpoint(std::string_view host, uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

std::string PeerOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket, generic, &size) != 0) return "a peer that has disconnected";
  if (address.ss_family == AF_UNIX) return "a process on this host";
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(generic, size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "a peer without an address";
  }
  return Endpoint(host.data(), static_cast<uint16_t>(std::strtoul(port.data(), nullptr, 10)));
}

// Without leading empty buffers: with an empty first buffer, a result of 0 would be ambiguous.
std::span<const iovec> SkipEmpty(std::span<const iovec> parts) {
  while (!parts.empty() && parts.front().iov_len == 0) parts = parts.subspan(1);
  return parts;
}

msghdr MessageOf(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // NOLINT: read only, by a struct for both
  message.msg_iovlen = std::min<size_t>(parts.size(), IOV_MAX);
  return message;
}

struct FreeAddresses {
  void operator()(addrinfo* first) const { freeaddrinfo(first); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> Resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (error == 0) return Addresses(first);
  return Unavailable("looking up the addresses of {}: {}", Endpoint(host, port),
                     gai_strerror(error));
}

void SetOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));  // a Unix socket has no options of TCP
}

// A peer whose machine or network was lost sends neither FIN nor RST. Without these options a read
// would wait forever, and a write would fail only after 15 minutes (tcp_retries2).
void SetTcpOptions(int socket) {
  constexpr int kIdleSeconds = 3;
  constexpr int kProbeSeconds = 2;
  constexpr int kProbes = 3;
  constexpr int kUserTimeoutMs = 10'000;
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

Result<TcpListener> ListenAt(const addrinfo& address, const std::string& endpoint) {
  TcpListener listener{
      .socket = FileDescriptor(socket(address.ai_family, SOCK_STREAM | kSocketFlags, 0))};
  const int socket = listener.socket.get();
  if (socket < 0) return Errno("making a socket for {}", endpoint);
  SetOption(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) SetOption(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(socket, address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket, kWaitingConnections) != 0) {
    return Errno("listening on {}", endpoint);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Errno("reading the port of {}", endpoint);
  }
  listener.port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return listener;
}

// Waits until the connection is established or refused.
Status AwaitConnected(int socket, Time deadline, const std::string& endpoint) {
  pollfd wait{.fd = socket, .events = POLLOUT};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int ready =
        poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX)));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return Errno("waiting for {}", endpoint);
    if (ready == 0 && left.count() <= INT_MAX) {
      return DeadlineExceeded("connecting to {}: no answer within the timeout", endpoint);
    }
  }
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? Ok() : StatusFromErrno(error, fmt::format("connecting to {}", endpoint));
}

Result<FileDescriptor> ConnectTo(const addrinfo& address, Time deadline,
                                 const std::string& endpoint) {
  FileDescriptor connection(socket(address.ai_family, SOCK_STREAM | kSocketFlags, 0));
  if (!connection.valid()) return Errno("making a socket for {}", endpoint);
  if (connect(connection.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return Errno("connecting to {}", endpoint);
    EDL_RETURN_IF_ERROR(AwaitConnected(connection.get(), deadline, endpoint));
  }
  SetTcpOptions(connection.get());
  return connection;
}

struct UnixAddress {
  sockaddr_un address{};
  socklen_t size = 0;

  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<UnixAddress> AbstractAddress(const std::string& name) {
  UnixAddress out;
  out.address.sun_family = AF_UNIX;
  // A first byte of 0 means the abstract namespace.
  if (name.empty() || name.size() > sizeof(out.address.sun_path) - 1) {
    return InvalidArgument("a Unix name has {} bytes, and may have 1 to {}: \"{}\"", name.size(),
                           sizeof(out.address.sun_path) - 1, name);
  }
  std::memcpy(out.address.sun_path + 1, name.data(), name.size());
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

}  // namespace

SocketStream::SocketStream(FileDescriptor socket)
    : socket_(std::move(socket)), peer_(PeerOf(socket_.get())) {}

Result<size_t> SocketStream::Read(std::span<const iovec> buffers) {
  buffers = SkipEmpty(buffers);
  if (buffers.empty()) return size_t{0};
  msghdr message = MessageOf(buffers);
  while (true) {
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return Unavailable("{} has closed the connection", peer_);
    if (errno == EAGAIN) return size_t{0};
    // Whatever the error is, the connection cannot be used any more.
    if (errno != EINTR) return Unavailable("reading from {}: {}", peer_, std::strerror(errno));
  }
}

Result<size_t> SocketStream::Write(std::span<const iovec> pieces) {
  pieces = SkipEmpty(pieces);
  if (pieces.empty()) return size_t{0};
  const msghdr message = MessageOf(pieces);
  while (true) {
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return Unavailable("writing to {}: {}", peer_, std::strerror(errno));
  }
}

short SocketStream::EventsFor(Interest interest) const {
  switch (interest) {
    case Interest::kRead:
      return POLLIN;
    case Interest::kWrite:
      return POLLOUT;
    case Interest::kNothing:
      return POLLRDHUP;
    case Interest::kBoth:
      break;
  }
  return POLLIN | POLLOUT;
}

bool SocketStream::IsPeerGone() const {
  pollfd state{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) > 0;  // POLLHUP and POLLERR come unasked
}

Result<TcpListener> ListenTcp(const std::string& host, uint16_t port) {
  if (host.empty()) {
    // An IPv6 socket accepts IPv4 too; the second address is for hosts without IPv6.
    Result<TcpListener> any = ListenTcp("::", port);
    if (any.ok() || any.status().code() == Code::kAlreadyExists) return any;
    return ListenTcp("0.0.0.0", port);
  }
  EDL_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, port));
  const std::string endpoint = Endpoint(host, port);
  Result<TcpListener> listener = NotFound("{} has no address", endpoint);
  for (const addrinfo* at = addresses.get(); at != nullptr && !listener.ok(); at = at->ai_next) {
    listener = ListenAt(*at, endpoint);
  }
  return listener;
}

Result<FileDescriptor> ListenUnix(const std::string& name) {
  EDL_ASSIGN_OR_RETURN(const UnixAddress address, AbstractAddress(name));
  FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | kSocketFlags, 0));
  if (!listener.valid()) return Errno("making a socket for the Unix name {}", name);
  if (bind(listener.get(), address.generic(), address.size) != 0 ||
      listen(listener.get(), kWaitingConnections) != 0) {
    return Errno("listening on the Unix name {}", name);
  }
  return listener;
}

Result<std::optional<FileDescriptor>> Accept(const FileDescriptor& listener) {
  while (true) {
    FileDescriptor connection(accept4(listener.get(), nullptr, nullptr, kSocketFlags));
    if (connection.valid()) {
      SetTcpOptions(connection.get());
      return std::optional(std::move(connection));
    }
    if (errno == EAGAIN) return std::optional<FileDescriptor>();
    // ECONNABORTED: the peer closed the connection before it was accepted.
    if (errno != EINTR && errno != ECONNABORTED) return Errno("accepting a connection");
  }
}

Result<FileDescriptor> ConnectTcp(const std::string& host, uint16_t port, Duration timeout) {
  EDL_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, port));
  const Time deadline = std::chrono::steady_clock::now() + timeout;
  const std::string endpoint = Endpoint(host, port);
  Result<FileDescriptor> connection = NotFound("{} has no address", endpoint);
  for (const addrinfo* at = addresses.get(); at != nullptr && !connection.ok(); at = at->ai_next) {
    connection = ConnectTo(*at, deadline, endpoint);
  }
  return connection;
}

Result<TcpDial> TcpDial::Start(const std::string& host, uint16_t port, size_t first) {
  EDL_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, port));
  TcpDial dial;
  dial.endpoint_ = Endpoint(host, port);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Address address{.address = {}, .size = at->ai_addrlen};
    std::memcpy(&address.address, at->ai_addr, at->ai_addrlen);
    dial.left_.push_back(address);
  }
  if (dial.left_.empty()) return NotFound("{} has no address", dial.endpoint_);
  const auto middle = dial.left_.begin() + static_cast<ptrdiff_t>(first % dial.left_.size());
  std::rotate(dial.left_.begin(), middle, dial.left_.end());
  std::reverse(dial.left_.begin(), dial.left_.end());
  // Continue() also handles a connection that is established immediately.
  EDL_RETURN_IF_ERROR(dial.Next().status());
  return dial;
}

Result<std::optional<FileDescriptor>> TcpDial::Next() {
  while (true) {
    const Address to = left_.back();
    left_.pop_back();
    socket_ = FileDescriptor(socket(to.address.ss_family, SOCK_STREAM | kSocketFlags, 0));
    const bool is_last = left_.empty();
    if (!socket_.valid()) {
      if (is_last) return Errno("making a socket for {}", endpoint_);
      continue;
    }
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0 ||
        errno == EINPROGRESS || errno == EINTR) {
      return std::optional<FileDescriptor>();
    }
    if (is_last) return Errno("connecting to {}", endpoint_);
  }
}

Result<std::optional<FileDescriptor>> TcpDial::Continue() {
  pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (poll(&ready, 1, 0) <= 0) return std::optional<FileDescriptor>();
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) {
    SetTcpOptions(socket_.get());
    return std::optional(std::move(socket_));
  }
  if (left_.empty()) return StatusFromErrno(error, fmt::format("connecting to {}", endpoint_));
  return Next();
}

Result<FileDescriptor> ConnectUnix(const std::string& name) {
  EDL_ASSIGN_OR_RETURN(const UnixAddress address, AbstractAddress(name));
  FileDescriptor connection(socket(AF_UNIX, SOCK_STREAM | kSocketFlags, 0));
  if (!connection.valid()) return Errno("making a socket for the Unix name {}", name);
  if (connect(connection.get(), address.generic(), address.size) != 0) {
    return Errno("connecting to the Unix name {}", name);
  }
  return connection;
}

}  // namespace edl::wire
