#pragma once

#include <cstddef>
#include <span>

#include <sys/uio.h>

#include "base/status.h"

namespace edl::wire {

// One end of a connection that carries bytes both ways, in order. No call blocks. When Read or
// Write returns 0, wait until fd() is ready, call OnReady(), and try again:
//
//   poll(stream.fd(), stream.EventsFor(...));  stream.OnReady();  stream.Read(...);
//
// fd() is edge-triggered: it becomes ready for reading only after Read returned 0 since the last
// OnReady(), and for writing only after Write did. So read until 0 before you wait for more bytes,
// and try both before you wait for both. Spurious readiness is possible.
//
// Confined to one thread.
class Stream {
 public:
  virtual ~Stream() = default;

  // Fills `buffers` in order, and returns the number of bytes. 0: there is nothing to read now.
  // Unavailable: the peer has closed or is gone, and everything it sent was read.
  virtual Result<size_t> Read(std::span<const iovec> buffers) = 0;
  // Sends as much of `pieces` as fits, and returns the number of bytes. 0: nothing fits now.
  // Unavailable: the peer has closed or is gone.
  virtual Result<size_t> Write(std::span<const iovec> pieces) = 0;

  virtual int fd() const = 0;
  // The events (POLLIN, POLLOUT) to poll fd() for, by what the caller waits for.
  // kNothing: only that the peer has closed or is gone.
  enum class Interest { kRead, kWrite, kBoth, kNothing };
  virtual short EventsFor(Interest interest) const = 0;
  // Call this when fd() is ready, before the next Read or Write.
  virtual void OnReady() = 0;
  // Whether the peer has closed or is gone, even if not everything it sent was read yet. Call this
  // after OnReady().
  virtual bool IsPeerGone() const = 0;
};

}  // namespace edl::wire
