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
  const std::string peer_;  // as messages name it
};

// What the functions below make does not block and is closed on exec. TCP sends at once
// (TCP_NODELAY), and a peer that vanished without closing is found out: an idle connection after 9
// seconds (keepalive), one with unacknowledged data after 10 (TCP_USER_TIMEOUT). Read and Write
// then fail with Unavailable.

struct TcpListener {
  FileDescriptor socket;
  uint16_t port = 0;
};

// Listens on the first address of `host` that can be had; an empty `host` is any address, of IPv6
// and IPv4 where there are both. Port 0 picks one. AlreadyExists: the port is taken.
Result<TcpListener> ListenTcp(const std::string& host, uint16_t port);

// Listens on a name in the abstract namespace: it is no file, and goes with the socket.
// AlreadyExists: the name is taken.
Result<FileDescriptor> ListenUnix(const std::string& name);

// The next connection. Nothing: nobody waits now.
Result<std::optional<FileDescriptor>> Accept(const FileDescriptor& listener);

// Blocks until one of the host's addresses answers, `timeout` at most; finding the addresses by
// name comes before that. Unavailable, DeadlineExceeded: try again later.
Result<FileDescriptor> ConnectTcp(const std::string& host, uint16_t port, Duration timeout);

// A TCP connection that is being made, without blocking: wait until fd() is writable, then call
// Continue(). Finding the addresses by name blocks, in Start. Confined.
class TcpDial {
 public:
  // `first` rotates the order of the host's addresses, so that repeated attempts try all of them.
  static Result<TcpDial> Start(const std::string& host, uint16_t port, size_t first);

  int fd() const { return socket_.get(); }
  // Nothing: not connected yet; fd() may be another descriptor now. A failure is that of the last
  // address.
  Result<std::optional<FileDescriptor>> Continue();

 private:
  struct Address {
    sockaddr_storage address;
    socklen_t size;
  };

  // Begins with the next address. Nothing: the connection is under way.
  Result<std::optional<FileDescriptor>> Next();

  std::string endpoint_;
  std::vector<Address> left_;  // the last is tried first
  FileDescriptor socket_;
};

// Unavailable: nobody listens there, or has no place for one more now.
Result<FileDescriptor> ConnectUnix(const std::string& name);

}  // namespace edl::wire
