#include "reconciler/process/operator_metrics.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace edl::reconciler {
namespace {

constexpr std::array<const char*, 3> kResults = {"success", "requeue_after", "error"};
constexpr const char* kController = "tfjob-controller";

void Head(std::string& out, const char* name, const char* type, const char* help) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

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

std::string OperatorMetrics::Text(const kube::WorkQueue::Counters& queue, size_t jobs,
                                  bool leading) const {
  const MutexLock lock(mutex_);
  std::string out;
  auto to = std::back_inserter(out);
  const std::array<std::pair<const char*, uint64_t JobCounts::*>, 5> counters = {
      {{"created", &JobCounts::created},
       {"deleted", &JobCounts::deleted},
       {"successful", &JobCounts::successful},
       {"failed", &JobCounts::failed},
       {"restarted", &JobCounts::restarted}}};
  for (const auto& [name, member] : counters) {
    const std::string full = fmt::format("training_operator_jobs_{}_total", name);
    Head(out, full.c_str(), "counter", fmt::format("Number of jobs {}.", name).c_str());
    for (const auto& [ns, counts] : by_namespace_) {
      fmt::format_to(to, "{}{{framework=\"tensorflow\",job_namespace=\"{}\"}} {}\n", full, ns,
                     counts.*member);
    }
  }
  Head(out, "controller_runtime_reconcile_total", "counter",
       "Number of reconciliations of jobs, by result.");
  for (size_t i = 0; i < kResults.size(); ++i) {
    fmt::format_to(to, "controller_runtime_reconcile_total{{controller=\"{}\",result=\"{}\"}} {}\n",
                   kController, kResults[i], syncs_[i]);
  }
  Head(out, "controller_runtime_reconcile_errors_total", "counter",
       "Number of reconciliations of jobs that failed.");
  fmt::format_to(to, "controller_runtime_reconcile_errors_total{{controller=\"{}\"}} {}\n",
                 kController, syncs_[static_cast<size_t>(SyncResult::kError)]);
  const char* const time = "controller_runtime_reconcile_time_seconds";
  Head(out, time, "histogram", "Duration of the reconciliation of a job.");
  uint64_t total = 0;
  for (size_t i = 0; i < kBuckets.size(); ++i) {
    total += durations_[i];
    fmt::format_to(to, "{}_bucket{{controller=\"{}\",le=\"{}\"}} {}\n", time, kController,
                   kBuckets[i], total);
  }
  total += durations_.back();
  fmt::format_to(to, "{}_bucket{{controller=\"{}\",le=\"+Inf\"}} {}\n", time, kController, total);
  fmt::format_to(to, "{}_sum{{controller=\"{}\"}} {}\n", time, kController, seconds_);
  fmt::format_to(to, "{}_count{{controller=\"{}\"}} {}\n", time, kController, total);
  Head(out, "controller_runtime_active_workers", "gauge",
       "Number of jobs that are being reconciled.");
  fmt::format_to(to, "controller_runtime_active_workers{{controller=\"{}\"}} {}\n", kController,
                 queue.running);
  Head(out, "workqueue_depth", "gauge", "Number of jobs that wait for reconciliation.");
  fmt::format_to(to, "workqueue_depth{{name=\"{}\"}} {}\n", kController, queue.queued);
  Head(out, "workqueue_adds_total", "counter", "Number of times that a job was queued.");
  fmt::format_to(to, "workqueue_adds_total{{name=\"{}\"}} {}\n", kController, queue.added);
  Head(out, "workqueue_retries_total", "counter", "Number of times that a job was queued again.");
  fmt::format_to(to, "workqueue_retries_total{{name=\"{}\"}} {}\n", kController, queue.retried);
  Head(out, "elasticdl_operator_jobs", "gauge", "Number of TFJobs in the cluster.");
  fmt::format_to(to, "elasticdl_operator_jobs {}\n", jobs);
  Head(out, "leader_election_master_status", "gauge", "Whether this process holds the lease.");
  fmt::format_to(to, "leader_election_master_status{{name=\"{}\"}} {}\n", kController,
                 leading ? 1 : 0);
  return out;
}

}  // namespace edl::reconciler
