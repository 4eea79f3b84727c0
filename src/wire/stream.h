#pragma once

#include <cstddef>
#include <span>

#include <sys/uio.h>

#include "base/status.h"

namespace edl::wire {

// One end of a connection: bytes go both ways and arrive in order. Nothing here blocks; whoever
// gets a 0 waits until fd() is ready, calls Woken() and tries again:
//
//   poll(stream.fd(), stream.EventsFor(...));  stream.Woken();  stream.Read(...);
//
// Only a 0 since the last Woken() makes fd() tell of what it was a 0 of: who has read some reads on
// until 0, who waits for both has tried both. fd() may be ready for nothing.
//
// Confined.
class Stream {
 public:
  virtual ~Stream() = default;

  // Fills the rooms, the first one first, and tells how many bytes that were. 0: nothing is there
  // now. Unavailable: the other end has closed or is gone, and all it sent was read.
  virtual Result<size_t> Read(std::span<const iovec> rooms) = 0;
  // Sends what there is room for, and tells how many bytes that were. 0: there is no room now.
  // Unavailable: nobody will read it.
  virtual Result<size_t> Write(std::span<const iovec> pieces) = 0;

  virtual int fd() const = 0;
  // What to ask poll or epoll for (POLLIN, POLLOUT) by one who would read, write or both.
  // kNothing: to be told only that the other end has closed or is gone.
  enum class Wish { kRead, kWrite, kBoth, kNothing };
  virtual short EventsFor(Wish wish) const = 0;
  // Call it when fd() became ready, before the next Read or Write.
  virtual void Woken() = 0;
  // Whether the other end has closed or is gone, even if what it sent before was not read yet.
  // Call it after Woken().
  virtual bool IsPeerGone() const = 0;
};

}  // namespace edl::wire
