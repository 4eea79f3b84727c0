#pragma once

#include <cstddef>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace edl::ps_client {

// An epoll set of the descriptors of a client's lanes. Confined.
class ReadySet {
 public:
  // Watches one descriptor of a lane while it exists. Confined.
  class Watch {
   public:
    Watch(const ReadySet& set, size_t lane) : set_(set), lane_(lane) {}
    ~Watch() { Clear(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Watches this descriptor instead of the previous one. Makes a system call only if something
    // changed. ResourceExhausted: the limit fs.epoll.max_user_watches is reached.
    Status Set(int fd, short events);
    // Call this before the descriptor is closed: a forked child may keep it open.
    void Clear();

   private:
    const ReadySet& set_;
    const size_t lane_;
    int fd_ = -1;
    short events_ = 0;
  };

  static Result<ReadySet> Make();

  // Readable when a watched descriptor is ready.
  int fd() const { return epoll_.get(); }
  // The lanes whose descriptors are ready now. A lane may occur twice.
  const std::vector<size_t>& Take();

 private:
  explicit ReadySet(FileDescriptor epoll) : epoll_(std::move(epoll)) {}

  FileDescriptor epoll_;
  std::vector<size_t> ready_;
};

}  // namespace edl::ps_client
