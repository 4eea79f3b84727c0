#include "reconciler/process/operator_metrics.h"

#include <algorithm>
#include <utility>

#include "metrics/catalog.h"

namespace edl::reconciler {
namespace {

constexpr std::array<const char*, 3> kResults = {"success", "requeue_after", "error"};
constexpr const char* kController = "tfjob-controller";
constexpr const char* kFramework = "tensorflow";

}  // namespace

void OperatorMetrics::Count(const std::string& ns, const Milestones& milestones) {
  const MutexLock lock(mutex_);
  JobCounts& counts = by_namespace_[ns];
  counts.created += milestones.created ? 1 : 0;
  counts.successful += milestones.succeeded ? 1 : 0;
  counts.failed += milestones.failed ? 1 : 0;
  counts.restarted += milestones.restarted ? 1 : 0;
}

void OperatorMetrics::CountDeletion(const std::string& ns) {
  const MutexLock lock(mutex_);
  ++by_namespace_[ns].deleted;
}

void OperatorMetrics::CountSync(SyncResult result, Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  const MutexLock lock(mutex_);
  ++syncs_[static_cast<size_t>(result)];
  const auto bucket = std::lower_bound(kBuckets.begin(), kBuckets.end(), seconds);
  ++durations_[static_cast<size_t>(bucket - kBuckets.begin())];
  seconds_ += seconds;
}

void OperatorMetrics::AddTo(metrics::Exposition& out, const kube::WorkQueue::Counters& queue,
                            size_t jobs, size_t threads, bool leading) const {
  {
    const MutexLock lock(mutex_);
    AddJobs(out);
    AddReconciliations(out);
  }
  const auto add = [&](const metrics::Metric& metric, const auto& number) {
    out.Begin(metric);
    out.Add({kController}, number);
  };
  add(metrics::kActiveWorkers, uint64_t{queue.running});
  add(metrics::kQueueDepth, uint64_t{queue.queued});
  add(metrics::kQueueAdds, queue.added);
  add(metrics::kQueueRetries, queue.retried);
  add(metrics::kQueueWaits, queue.waits);
  add(metrics::kQueueRuns, queue.runs);
  add(metrics::kQueueUnfinished, std::chrono::duration<double>(queue.unfinished_runs).count());
  add(metrics::kQueueLongest, std::chrono::duration<double>(queue.longest_run).count());
  add(metrics::kMostWorkers, uint64_t{threads});
  out.AddOnly(metrics::kTfJobs, uint64_t{jobs});
  add(metrics::kLeader, uint64_t{leading});
}

void OperatorMetrics::AddJobs(metrics::Exposition& out) const {
  const std::array<std::pair<const metrics::Metric&, uint64_t JobCounts::*>, 5> counters = {
      {{metrics::kJobsCreated, &JobCounts::created},
       {metrics::kJobsDeleted, &JobCounts::deleted},
       {metrics::kJobsSuccessful, &JobCounts::successful},
       {metrics::kJobsFailed, &JobCounts::failed},
       {metrics::kJobsRestarted, &JobCounts::restarted}}};
  for (const auto& [metric, member] : counters) {
    out.Begin(metric);
    for (const auto& [ns, counts] : by_namespace_) out.Add({kFramework, ns}, counts.*member);
  }
}

void OperatorMetrics::AddReconciliations(metrics::Exposition& out) const {
  out.Begin(metrics::kReconciles);
  for (size_t i = 0; i < kResults.size(); ++i) out.Add({kController, kResults[i]}, syncs_[i]);
  out.Begin(metrics::kReconcileErrors);
  out.Add({kController}, syncs_[static_cast<size_t>(SyncResult::kError)]);
  out.Begin(metrics::kReconcileTime);
  out.Add({kController},
          metrics::Buckets{.bounds = kBuckets, .counts = durations_, .sum = seconds_});
}

}  // namespace edl::reconciler
