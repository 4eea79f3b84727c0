#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "wire/stream.h"

namespace edl::wire {

// A stream over a connected socket, TCP or Unix.
//
// Confined.
class SocketStream final : public Stream {
 public:
  explicit SocketStream(FileDescriptor socket);

  Result<size_t> Read(std::span<const iovec> buffers) override;
  Result<size_t> Write(std::span<const iovec> pieces) override;
  int fd() const override { return socket_.get(); }
  short EventsFor(Interest interest) const override;
  void OnReady() override {}
  bool IsPeerGone() const override;

 private:
  const FileDescriptor socket_;
  const std::string peer_;  // its address, for errors
};

// All sockets below are non-blocking and close-on-exec. TCP sends immediately (TCP_NODELAY) and
// detects a peer that vanished without closing: after 9 seconds on an idle connection (keepalive),
// after 10 with unacknowledged data (TCP_USER_TIMEOUT). Read and Write then fail with Unavailable.

struct TcpListener {
  FileDescriptor socket;
  uint16_t port = 0;
};

// Listens on the first address of `host` that is available. An empty `host` means all addresses, of
// IPv6 and IPv4 where the host has both. Port 0: the system picks a port. AlreadyExists: the port
// is in use.
Result<TcpListener> ListenTcp(const std::string& host, uint16_t port);

// Listens on a name in the abstract namespace: there is no file, and the name is freed with the
// socket. AlreadyExists: the name is in use.
Result<FileDescriptor> ListenUnix(const std::string& name);

// Accepts the next connection. nullopt: no connection is waiting.
Result<std::optional<FileDescriptor>> Accept(const FileDescriptor& listener);

// Blocks until one of the host's addresses accepts the connection, for at most `timeout` in
// addition to the DNS lookup. Unavailable, DeadlineExceeded: try again later.
Result<FileDescriptor> ConnectTcp(const std::string& host, uint16_t port, Duration timeout);

// Connects to a TCP port without blocking: wait until fd() is writable, then call Continue(). Only
// the DNS lookup in Start blocks. Confined.
class TcpDial {
 public:
  // `first` rotates the order of the host's addresses, so that repeated attempts try all of them.
  static Result<TcpDial> Start(const std::string& host, uint16_t port, size_t first);

  int fd() const { return socket_.get(); }
  // nullopt: not connected yet; fd() may have changed. A failure is that of the last address.
  Result<std::optional<FileDescriptor>> Continue();

 private:
  struct Address {
    sockaddr_storage address;
    socklen_t size;
  };

  // Starts to connect to the next address. nullopt: in progress.
  Result<std::optional<FileDescriptor>> Next();

  std::string endpoint_;
  std::vector<Address> left_;  // the last is tried first
  FileDescriptor socket_;
};

// Unavailable: no process listens on the name, or its queue of connections is full.
Result<FileDescriptor> ConnectUnix(const std::string& name);

}  // namespace edl::wire
