#pragma once

#include <cstddef>
#include <span>

#include <sys/uio.h>

#include "base/status.h"

namespace edl::wire {

// One end of a connection: transfers bytes in both directions, in order. No call blocks. When Read
// or Write returns 0, wait until fd() is ready, call OnReady(), and try again:
//
//   poll(stream.fd(), stream.EventsFor(...));  stream.OnReady();  stream.Read(...);
//
// fd() is edge-triggered: it becomes ready for reading only after Read returned 0 since the last
// OnReady(), and for writing only after Write returned 0. So call Read until it returns 0 before
// you wait for more bytes, and call both before you wait for both. Spurious readiness is possible.
//
// Confined to one thread.
class Stream {
 public:
  virtual ~Stream() = default;

  // Fills `buffers` in order, and returns the number of bytes. 0: nothing can be read now.
  // Unavailable: the peer has closed the stream or was lost, and everything that it sent was read.
  virtual Result<size_t> Read(std::span<const iovec> buffers) = 0;
  // Sends as much of `pieces` as fits, and returns the number of bytes. 0: nothing fits now.
  // Unavailable: the peer has closed the stream or was lost.
  virtual Result<size_t> Write(std::span<const iovec> pieces) = 0;

  virtual int fd() const = 0;
  // The events (POLLIN, POLLOUT) to poll fd() for, by what the caller waits for.
  // kNothing: only for the loss of the peer.
  enum class Interest { kRead, kWrite, kBoth, kNothing };
  virtual short EventsFor(Interest interest) const = 0;
  // Call this when fd() is ready, before the next Read or Write.
  virtual void OnReady() = 0;
  // Whether the peer has closed the stream or was lost, even if not everything that it sent was
  // read yet. Call this after OnReady().
  virtual bool IsPeerGone() const = 0;
};

}  // namespace edl::wire
