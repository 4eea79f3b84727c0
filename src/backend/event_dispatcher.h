#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "job/replica.h"

namespace edl::backend {

// Calls a backend's watcher for its events, in order, on a thread of its own: whoever has news is
// not held up by the watcher, and the watcher may call the backend.
//
// Thread-safe.
class EventDispatcher {
 public:
  using Watcher = std::function<void(const job::ReplicaEvent&)>;

  EventDispatcher();
  // Waits for a call that is under way. What was not told is not told any more.
  ~EventDispatcher();
  EventDispatcher(const EventDispatcher&) = delete;
  EventDispatcher& operator=(const EventDispatcher&) = delete;

  // From now on `watcher` is called, with `first` before anything else. The one before it is not
  // called any more, but for a call that is under way.
  void Watch(Watcher watcher, std::vector<job::ReplicaEvent> first);
  // Nothing happens while nobody watches.
  void Tell(job::ReplicaEvent event);

 private:
  void Work();

  Mutex mutex_;
  CondVar changed_;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::deque<job::ReplicaEvent> untold_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace edl::backend
