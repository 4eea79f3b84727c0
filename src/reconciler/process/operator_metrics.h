#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "metrics/exposition.h"
#include "reconciler/reconcile.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/work_queue.h"

namespace edl::reconciler {

// The counters of the operator, with the names of the upstream operator.
//
// Thread-safe.
class OperatorMetrics {
 public:
  enum class SyncResult { kSuccess, kRequeueAfter, kError };

  // Something happened to a job of this namespace.
  void Count(const std::string& ns, const Milestones& milestones);
  // A job was deleted because its time to live was over.
  void CountDeletion(const std::string& ns);
  void CountSync(SyncResult result, Duration duration);

  // Adds all metrics of the operator. `threads`: that reconcile. `leading`: whether this process
  // holds the lease.
  void AddTo(metrics::Exposition& out, const kube::WorkQueue::Counters& queue, size_t jobs,
             size_t threads, bool leading) const;

 private:
  struct JobCounts {
    uint64_t created = 0;
    uint64_t deleted = 0;
    uint64_t successful = 0;
    uint64_t failed = 0;
    uint64_t restarted = 0;
  };
  static constexpr std::array<double, 9> kBuckets = {0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,  1,     5};

  void AddJobs(metrics::Exposition& out) const REQUIRES(mutex_);
  void AddReconciliations(metrics::Exposition& out) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, JobCounts> by_namespace_ GUARDED_BY(mutex_);
  std::array<uint64_t, 3> syncs_ GUARDED_BY(mutex_) = {};
  std::array<uint64_t, kBuckets.size() + 1> durations_ GUARDED_BY(mutex_) = {};
  double seconds_ GUARDED_BY(mutex_) = 0;
};

}  // namespace edl::reconciler
