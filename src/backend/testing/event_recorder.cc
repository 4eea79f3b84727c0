#include "backend/testing/event_recorder.h"

#include <algorithm>

namespace edl::backend {

std::function<void(const job::ReplicaEvent&)> EventRecorder::Watcher() {
  return [this](const job::ReplicaEvent& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  };
}

std::optional<job::ReplicaEvent> EventRecorder::Await(job::ReplicaEvent::Kind kind,
                                                      const std::string& name) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  const MutexLock lock(mutex_);
  while (true) {
    const auto found = std::find_if(events_.begin(), events_.end(), [&](const auto& event) {
      return event.kind == kind && event.name == name;
    });
    if (found != events_.end()) return *found;
    if (!changed_.WaitUntil(mutex_, deadline)) return std::nullopt;
  }
}

std::vector<job::ReplicaEvent> EventRecorder::Events() const {
  const MutexLock lock(mutex_);
  return events_;
}

}  // namespace edl::backend
