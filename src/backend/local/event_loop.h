#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace edl::backend::local {

// Calls whoever waits for a file descriptor or a moment, one at a time. Confined to its thread; a
// callback may add and remove anything, itself included.
class EventLoop {
 public:
  using OnReady = std::function<void(uint32_t events)>;  // EPOLLIN, EPOLLOUT, EPOLLHUP, ...

  static Result<std::unique_ptr<EventLoop>> Make(const Clock& clock);

  Status Add(int fd, uint32_t events, OnReady on_ready);
  void Modify(int fd, uint32_t events);
  void Remove(int fd);  // before the descriptor is closed
  void CallAfter(Duration delay, std::function<void()> call);

  // Waits for the next thing to happen and makes its calls.
  void RunOnce();

 private:
  EventLoop(const Clock& clock, FileDescriptor epoll) : clock_(clock), epoll_(std::move(epoll)) {}
  int MillisecondsToNextTimer() const;
  void CallTimers();

  const Clock& clock_;
  FileDescriptor epoll_;
  // Shared with RunOnce while a callback removes itself.
  std::map<int, std::shared_ptr<OnReady>> watched_;
  std::multimap<Time, std::function<void()>> timers_;
};

}  // namespace edl::backend::local
