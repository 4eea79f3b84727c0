#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "job/job_view.h"

namespace edl::master {

// Writes views of the job on a thread of its own: the text of 10,000 replicas and a disk's fsync
// would hold up the loop. A view that was not written yet when the next one comes is skipped.
//
// Thread-safe.
class StatusWriter {
 public:
  // `write` is called on the writer's thread, for one view at a time. `durable`: one of the views
  // since the last call is to be kept, not only shown.
  using Write = std::function<void(const job::JobView&, bool durable)>;

  explicit StatusWriter(Write write);
  // Writes what is left.
  ~StatusWriter();

  void Show(job::JobView view, bool durable);
  // Returns when all that was shown before is written.
  void Flush();

 private:
  void Run();

  const Write write_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<job::JobView> next_ GUARDED_BY(mutex_);
  bool durable_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace edl::master
