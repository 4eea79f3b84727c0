#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/status.h"

namespace edl::ps {

// Calls a function on an event loop, once after some time or periodically. Confined to the loop.
class Timer {
 public:
  // Makes a timer that is not set. The loop outlives it. `on_time` must not destroy the timer
  // directly, only through EventLoop::Post. Fails when the process has no file descriptors left.
  static Result<std::unique_ptr<Timer>> Make(EventLoop& loop, std::function<void()> on_time);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void SetOnce(Duration after) { Set(after, Duration::zero()); }
  void SetEvery(Duration period) { Set(period, period); }

 private:
  Timer(EventLoop& loop, FileDescriptor fd) : loop_(loop), fd_(std::move(fd)) {}
  void Set(Duration first, Duration every);

  EventLoop& loop_;
  const FileDescriptor fd_;
};

}  // namespace edl::ps
