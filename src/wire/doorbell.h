#pragma once

#include <utility>

#include "base/file.h"

namespace edl::wire {

// A Unix socket by which one end of a ring wakes the other, and learns that it is gone.
//
// Confined.
class Doorbell {
 public:
  explicit Doorbell(FileDescriptor socket) : socket_(std::move(socket)) {}

  // Makes the other end's fd() readable.
  void Ring();
  // Takes the rings that came. Call it when fd() is readable.
  void Answer();
  // Whether the other end has closed or died, as Ring or Answer found.
  bool PeerClosed() const { return is_alone_; }
  int fd() const { return socket_.get(); }

 private:
  const FileDescriptor socket_;
  bool is_alone_ = false;
};

}  // namespace edl::wire
