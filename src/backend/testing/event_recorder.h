#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/mutex.h"

namespace edl::backend {

// Records the events of a backend, and waits for them. Thread-safe.
class EventRecorder {
 public:
  // How long Await waits before it fails the test.
  static constexpr std::chrono::seconds kTimeout{20};

  // The function to pass to Backend::Watch. The recorder must outlive the backend or the next
  // Watch.
  std::function<void(const job::ReplicaEvent&)> Watcher();

  // Waits for the first event of this kind about `name` (empty for kSynced). nullopt: the event did
  // not arrive in time; the test has failed with a message that lists the events.
  std::optional<job::ReplicaEvent> Await(job::ReplicaEvent::Kind kind,
                                         const std::string& name = "");
  std::vector<job::ReplicaEvent> Events() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<job::ReplicaEvent> events_ GUARDED_BY(mutex_);
};

}  // namespace edl::backend
