#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"

namespace edl {

// An epoll loop: waits for file descriptors, timers and posted work, and runs their callbacks on
// one thread. A callback may add and remove any descriptor, also its own. A callback may run
// spuriously after the number of a closed descriptor was reused, so it must tolerate that nothing
// is ready.
//
// The master's gRPC loop does not use this class, because gRPC waits in its own completion queue.
//
// Confined to the thread that runs it, except Post and Stop, which are thread-safe.
class EventLoop {
 public:
  // `clock` outlives the loop. Fails if the kernel has no free descriptor or epoll watch.
  static Result<std::unique_ptr<EventLoop>> Make(const Clock& clock);

  using OnReady = std::function<void()>;
  // Calls `on_ready` while the descriptor is ready for `events` (POLLIN, POLLOUT), or was closed by
  // its peer or has an error. ResourceExhausted: the kernel has no free epoll watch. REQUIRES: `fd`
  // was not added before.
  Status Add(int fd, short events, OnReady on_ready);
  void Change(int fd, short events);
  // Call before `fd` is closed. Its own `on_ready` may call this.
  void Remove(int fd);

  // Calls `call` once, after `delay`.
  void CallAfter(Duration delay, std::function<void()> call);

  // Runs `work` on the loop's thread. Work posted after Stop() is dropped.
  void Post(std::function<void()> work);
  // Sets background work that runs in small pieces between events. `work` returns true while it has
  // more to do; after false it is called again after the next event.
  void SetWork(std::function<bool()> work) { work_ = std::move(work); }

  // Runs until Stop().
  void Run();
  // Waits for the next event and runs its callbacks.
  void RunOnce();
  void Stop();

 private:
  EventLoop(const Clock& clock, FileDescriptor epoll, FileDescriptor doorbell);

  void RunPosted();
  int MillisecondsToNextTimer() const;
  void CallTimers();

  const Clock& clock_;
  const FileDescriptor epoll_;
  const FileDescriptor doorbell_;  // an eventfd, readable when work was posted
  std::atomic<bool> stopped_ = false;
  std::function<bool()> work_;
  bool more_work_ = false;
  // Shared with the callback that runs now, which may remove its own entry.
  std::unordered_map<int, std::shared_ptr<OnReady>> waiting_;
  std::multimap<Time, std::function<void()>> timers_;
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ GUARDED_BY(mutex_);
};

// A loop and the thread that runs it. Thread-safety is that of EventLoop.
class LoopThread {
 public:
  explicit LoopThread(std::unique_ptr<EventLoop> loop);
  // Stops the loop and waits for its thread.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  EventLoop& loop() { return *loop_; }
  // Runs `work` on the loop's thread and waits until it is done. REQUIRES: the caller is another
  // thread.
  void Run(const std::function<void()>& work);

 private:
  const std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace edl
