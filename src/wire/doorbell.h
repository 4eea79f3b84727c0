#pragma once

#include <utility>

#include "base/file.h"

namespace edl::wire {

// A Unix socket through which one end of a ring wakes the other end, and detects that the other end
// has exited.
//
// Confined.
class Doorbell {
 public:
  explicit Doorbell(FileDescriptor socket) : socket_(std::move(socket)) {}

  // Makes the other end's fd() readable.
  void Ring();
  // Consumes the rings so far. Call this when fd() is readable.
  void Answer();
  // Whether Ring or Answer found that the other end has closed its socket or exited.
  bool PeerClosed() const { return is_alone_; }
  int fd() const { return socket_.get(); }

 private:
  const FileDescriptor socket_;
  bool is_alone_ = false;
};

}  // namespace edl::wire
