#pragma once

#include <optional>

#include "reconciler/cleanup.h"
#include "reconciler/job_outcome.h"
#include "reconciler/reconcile.h"

#include "base/clock.h"

namespace edl::reconciler {

// Adds what the data-shard service of a job needs to the plan of one pass. Does nothing for a job
// without one.
//
// Confined to one call of Reconcile. Everything that it refers to outlives it.
class ShardPlan {
 public:
  // How often the progress is read.
  static constexpr std::chrono::seconds kReadProgressEvery{5};
  // The service of a job that has ended runs for this long, so that its last progress is read.
  static constexpr std::chrono::seconds kKeptAfterEnd{10};

  ShardPlan(const Observed& observed, const Settings& settings, WallTime now, Cleanup& cleanup,
            Plan& plan)
      : job_(observed.job),
        shards_(observed.shards),
        settings_(settings.shards),
        now_(now),
        cleanup_(cleanup),
        plan_(plan) {}

  void ReadProgress();
  // Why the service has ended the job; nullopt: it has not.
  std::optional<JobFailure> Failure() const;
  // Creates the objects of the service, and replaces its pod if that has ended. A suspended job
  // keeps its service, and with it the ledger.
  void Ensure();
  // Deletes the pod of a job that has ended. Service and secret go with the job.
  void AfterEnd();
  // Deletes the pod of a job that is being deleted, if its node is lost.
  void DuringDeletion();

 private:
  bool IsOurs(const ReplicaPod& pod) const { return pod.owner == job_.uid; }
  void Create();
  void CreateNetworkService();

  const TFJob& job_;
  const std::optional<ShardService>& shards_;
  const ShardSettings& settings_;
  const WallTime now_;
  Cleanup& cleanup_;
  Plan& plan_;
};

}  // namespace edl::reconciler
