#include "backend/local/event_loop.h"

#include <algorithm>
#include <array>
#include <utility>

#include <sys/epoll.h>

namespace edl::backend::local {

Result<std::unique_ptr<EventLoop>> EventLoop::Make(const Clock& clock) {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Errno("epoll_create1");
  return std::unique_ptr<EventLoop>(new EventLoop(clock, std::move(epoll)));
}

Status EventLoop::Add(int fd, uint32_t events, OnReady on_ready) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Errno("watching fd {}", fd);
  watched_[fd] = std::make_shared<OnReady>(std::move(on_ready));
  return Ok();
}

void EventLoop::Modify(int fd, uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0, "fd {} is not watched", fd);
}

void EventLoop::Remove(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(fd);
}

void EventLoop::CallAfter(Duration delay, std::function<void()> call) {
  timers_.emplace(clock_.Now() + delay, std::move(call));
}

int EventLoop::MillisecondsToNextTimer() const {
  if (timers_.empty()) return -1;
  const Duration left = timers_.begin()->first - clock_.Now();
  const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(rounded_up, 0, 60'000));
}

void EventLoop::CallTimers() {
  while (!timers_.empty() && timers_.begin()->first <= clock_.Now()) {
    const std::function<void()> call = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    call();
  }
}

void EventLoop::RunOnce() {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), ready.size(), MillisecondsToNextTimer());
  // Each is looked up again, and the descriptor's number may be another's by then: a callback must
  // bear being called without need, as all do that read until EAGAIN.
  for (int n = 0; n < count; ++n) {
    const auto found = watched_.find(ready.at(n).data.fd);
    if (found == watched_.end()) continue;
    const std::shared_ptr<OnReady> call = found->second;
    (*call)(ready.at(n).events);
  }
  CallTimers();
}

}  // namespace edl::backend::local
