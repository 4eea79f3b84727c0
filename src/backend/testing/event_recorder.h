#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/mutex.h"

namespace edl::backend {

// A watcher that remembers, and with which a test waits for what must come. Thread-safe.
class EventRecorder {
 public:
  // How long a wait may last before the test is told that nothing came.
  static constexpr std::chrono::seconds kTimeout{20};

  // What to hand to Backend::Watch. The recorder must outlive the backend or the next Watch.
  std::function<void(const job::ReplicaEvent&)> Watcher();

  // The first event of this kind about `name` (of kSynced: about nobody), waiting for it if need
  // be. None: it did not come.
  std::optional<job::ReplicaEvent> Await(job::ReplicaEvent::Kind kind,
                                         const std::string& name = "");
  std::vector<job::ReplicaEvent> Events() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<job::ReplicaEvent> events_ GUARDED_BY(mutex_);
};

}  // namespace edl::backend
