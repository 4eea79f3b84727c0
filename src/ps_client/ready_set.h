#pragma once

#include <cstddef>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace edl::ps_client {

// The descriptors of a client's lanes, in an epoll set: what is ready costs a call, what is not
// ready costs nothing. Confined.
class ReadySet {
 public:
  // A descriptor of a lane. Keep it as long as the descriptor is watched. Confined.
  class Watch {
   public:
    Watch(const ReadySet& set, size_t lane) : set_(set), lane_(lane) {}
    ~Watch() { Clear(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Watches this descriptor, and no other. It costs a call only if something changed.
    // ResourceExhausted: the kernel has no room for one more.
    Status Set(int fd, short events);
    // Call it before the descriptor is closed: a forked child may keep it open.
    void Clear();

   private:
    const ReadySet& set_;
    const size_t lane_;
    int fd_ = -1;
    short events_ = 0;
  };

  static Result<ReadySet> Make();

  // Readable when something is ready.
  int fd() const { return epoll_.get(); }
  // The lanes that have something ready now, some perhaps twice.
  const std::vector<size_t>& Take();

 private:
  explicit ReadySet(FileDescriptor epoll) : epoll_(std::move(epoll)) {}

  FileDescriptor epoll_;
  std::vector<size_t> ready_;
};

}  // namespace edl::ps_client
