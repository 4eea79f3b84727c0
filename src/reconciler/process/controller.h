#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reconciler/process/cluster_writer.h"
#include "reconciler/process/job_cache.h"
#include "reconciler/process/operator_metrics.h"
#include "reconciler/process/recorded_events.h"
#include "reconciler/reconcile.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kube/event_recorder.h"

namespace edl::reconciler {

// Brings one job at a time closer to what its spec wants: plans with Reconcile, writes the status,
// then carries out the actions.
//
// Thread-safe, but the same job must not be reconciled by two threads at the same time.
class JobController {
 public:
  // A status that differs only in counts is written at most this often.
  static constexpr std::chrono::milliseconds kCountsInterval{1000};
  // A job that the API server does not find any more, although the watch has not reported its
  // deletion, is reconciled again after this time.
  static constexpr std::chrono::seconds kLookForJob{5};

  // All arguments outlive this.
  JobController(JobCache& cache, ClusterWriter& writer, kube::EventRecorder& recorder,
                OperatorMetrics& metrics, const Clock& clock, PodSettings settings,
                ShardSettings shards);

  struct Outcome {
    Status status;  // an error means: retry later
    // When to reconcile the job again, if nothing changes before; nullopt: never. A deadline of the
    // job may come before the retry after an error.
    std::optional<WallTime> again_at = {};
    bool gone = false;  // there is no such job any more
  };
  // Reconciles one job; does nothing if it is gone or not ours. Blocks during the calls to the API
  // server.
  Outcome Sync(const kube::ObjectKey& key, const std::stop_token& stop);

  // The values of PriorityClasses, for gang scheduling.
  void SetPriorities(std::map<std::string, int64_t> priorities);

 private:
  // What this process remembers about a job. Losing it repeats events and nothing else.
  struct Memory {
    std::string uid;
    RecordedEvents recorded;
    Time counts_written;
    // The pod of the data-shard service that was last seen being deleted.
    std::string deleted_shards;  // its uid
    WallTime shards_end;         // when its grace period ends
  };

  Settings CurrentSettings();
  Memory& MemoryOf(const kube::Object& job) REQUIRES(mutex_);
  void Forget(const kube::ObjectKey& key);
  // Counts the grace period of a pod that is being deleted from when this process first saw that:
  // the clock of the API server may differ from ours. The cache does the same for replicas.
  void UseOwnClock(const kube::Object& job, ShardService& shards);
  void RecordEvents(const kube::Object& job, const std::vector<JobEvent>& events);
  // Forgets the events about pods that do not exist any more.
  void ForgetGonePods(const kube::Object& job, const Observed& observed);
  // Adds the last lines of the failed pod's log to the message of the job.
  void ExplainFailure(const kube::Object& job, Plan& plan, const std::stop_token& stop);
  // The data-shard service of a job. nullopt: it has none.
  Result<std::optional<ShardService>> ReadShards(const kube::Object& object, const TFJob& job,
                                                 const std::stop_token& stop);
  // Reconciles a job that is being deleted.
  Outcome SyncDeletion(CachedJob& found, const std::stop_token& stop);
  // Plans for a job; one that cannot be parsed fails. Takes its pods and services from `found`.
  Plan PlanFor(CachedJob& found, Result<TFJob> job, std::optional<ShardService> shards,
               WallTime now);
  // Returns when the status may be written. nullopt: now.
  std::optional<Time> StatusDueAt(const kube::Object& job, const JobStatus& stored,
                                  const JobStatus& next);

  JobCache& cache_;
  ClusterWriter& writer_;
  kube::EventRecorder& recorder_;
  OperatorMetrics& metrics_;
  const Clock& clock_;
  const PodSettings settings_;
  const ShardSettings shards_;

  Mutex mutex_;
  std::map<std::string, int64_t> priorities_ GUARDED_BY(mutex_);
  std::map<kube::ObjectKey, Memory> memories_ GUARDED_BY(mutex_);
};

}  // namespace edl::reconciler
