#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "job/job_view.h"

namespace edl::master {

// Writes views of the job on its own thread, because the text of 10,000 replicas and an fsync would
// block the loop. A view that is not written when the next one arrives is skipped.
//
// Thread-safe.
class StatusWriter {
 public:
  // Whether a view must survive a crash of the machine.
  enum class Durability { kBestEffort, kDurable };
  // Called on the writer's thread, for one view at a time. kDurable: one of the views since the
  // last call, perhaps a skipped one, is durable.
  using Write = std::function<void(const job::JobView&, Durability)>;

  explicit StatusWriter(Write write);
  // Writes the last view first.
  ~StatusWriter();

  // Has the view written. Does not wait for it.
  void Update(job::JobView view, Durability durability);
  // Returns when the views of all earlier calls of Update are written or skipped.
  void Flush();

 private:
  void Run();

  const Write write_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<job::JobView> next_ GUARDED_BY(mutex_);
  Durability durability_ GUARDED_BY(mutex_) = Durability::kBestEffort;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace edl::master
