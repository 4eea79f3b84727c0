#include "ps_client/ready_set.h"

#include <array>
#include <cerrno>

#include <sys/epoll.h>

#include "base/check.h"

namespace edl::ps_client {

Status ReadySet::Watch::Set(int fd, short events) {
  if (fd == fd_ && events == events_) return Ok();
  if (fd != fd_) Clear();
  epoll_event event{};
  event.events = static_cast<uint32_t>(events);
  event.data.u64 = lane_;
  const int what = fd_ < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(set_.epoll_.get(), what, fd, &event) != 0) {
    CHECK(errno == ENOSPC || errno == ENOMEM, "watching descriptor {}: errno {}", fd, errno);
    return Errno("watching a connection with epoll (the limit is fs.epoll.max_user_watches)");
  }
  fd_ = fd;
  events_ = events;
  return Ok();
}

void ReadySet::Watch::Clear() {
  if (fd_ >= 0) epoll_ctl(set_.epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
  fd_ = -1;
}

Result<ReadySet> ReadySet::Make() {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Errno("creating an epoll set");
  return ReadySet(std::move(epoll));
}

const std::vector<size_t>& ReadySet::Take() {
  ready_.clear();
  std::array<epoll_event, 256> events;  // NOLINT: written before it is read
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  // Events that do not fit are returned by the next call.
  for (int i = 0; i < count; ++i) {
    ready_.push_back(static_cast<size_t>(events[static_cast<size_t>(i)].data.u64));
  }
  return ready_;
}

}  // namespace edl::ps_client
