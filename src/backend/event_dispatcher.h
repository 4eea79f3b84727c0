#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "job/replica.h"

namespace edl::backend {

// Calls the watcher of a backend for each event, in order, on its own thread. The code that reports
// an event does not wait for the watcher, and the watcher may call the backend.
//
// Thread-safe.
class EventDispatcher {
 public:
  using Watcher = std::function<void(const job::ReplicaEvent&)>;

  EventDispatcher();
  // Waits for a running call of the watcher. Drops undelivered events.
  ~EventDispatcher();
  EventDispatcher(const EventDispatcher&) = delete;
  EventDispatcher& operator=(const EventDispatcher&) = delete;

  // Replaces the watcher. The new one receives `first` before any other event. A running call of
  // the previous watcher continues; it receives no further events.
  void Watch(Watcher watcher, std::vector<job::ReplicaEvent> first);
  // Queues the event. Drops it if there is no watcher.
  void Notify(job::ReplicaEvent event);

 private:
  void Work();

  Mutex mutex_;
  CondVar changed_;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::deque<job::ReplicaEvent> pending_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace edl::backend
