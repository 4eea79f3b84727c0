#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/status.h"

namespace edl::ps {

// Calls a function on a loop after some time, or every so often. Confined to the loop.
class Timer {
 public:
  // Calls nothing before it is set. The loop outlives it; `on_time` destroys it by EventLoop::Post
  // alone. Fails when the process has no descriptors left.
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
