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

// Waits for file descriptors and moments, and calls whoever asked for them, all on one thread. What
// is called may add and remove anything, itself included. It may be called without need, when a
// descriptor's number was taken over by another: it bears finding nothing to do.
//
// The master's gRPC loop is not one of these: gRPC waits in a completion queue of its own.
//
// Confined to the thread that runs it, but for Post and Stop, which are thread-safe.
class EventLoop {
 public:
  // `clock` outlives it. Fails when there are no descriptors left, or no room to watch one.
  static Result<std::unique_ptr<EventLoop>> Make(const Clock& clock);

  using OnReady = std::function<void()>;
  // Calls `on_ready` whenever the descriptor is ready for `events` (POLLIN, POLLOUT), closed by its
  // other end or broken. ResourceExhausted: the kernel has no room to watch it. REQUIRES: it is not
  // there yet.
  Status Add(int fd, short events, OnReady on_ready);
  void Change(int fd, short events);
  // Before it is closed. May be called by its own `on_ready`.
  void Remove(int fd);

  // Calls `call` once, after `delay`.
  void CallAfter(Duration delay, std::function<void()> call);

  // Runs `work` soon on the loop's thread. What is posted after the end is dropped.
  void Post(std::function<void()> work);
  // Work that is done in small pieces between events: returns whether there is more to do now.
  void SetWork(std::function<bool()> work) { work_ = std::move(work); }

  // Until Stop().
  void Run();
  // Waits for the next thing to happen, and makes its calls.
  void RunOnce();
  void Stop();

 private:
  EventLoop(const Clock& clock, FileDescriptor epoll, FileDescriptor doorbell);

  void RunPosted();
  int MillisecondsToNextTimer() const;
  void CallTimers();

  const Clock& clock_;
  const FileDescriptor epoll_;
  const FileDescriptor doorbell_;  // readable when something was posted
  std::atomic<bool> stopped_ = false;
  std::function<bool()> work_;
  bool more_work_ = false;
  // Shared with the call that is going on, which may remove its own entry.
  std::unordered_map<int, std::shared_ptr<OnReady>> waiting_;
  std::multimap<Time, std::function<void()>> timers_;
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ GUARDED_BY(mutex_);
};

// A loop with a thread that runs it. Thread-safe as the loop is.
class LoopThread {
 public:
  explicit LoopThread(std::unique_ptr<EventLoop> loop);
  // Stops the loop and waits for its thread.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  EventLoop& loop() { return *loop_; }
  // Runs `work` on the loop's thread and waits for it. REQUIRES: not called on that thread.
  void Run(const std::function<void()>& work);

 private:
  const std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace edl
