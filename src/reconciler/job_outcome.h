#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/job_status.h"
#include "reconciler/replica_pod.h"
#include "reconciler/tfjob.h"

#include "kube/event_recorder.h"

namespace edl::reconciler {

// Why a job has failed.
struct JobFailure {
  kube::EventType type = kube::EventType::kNormal;  // of the event
  std::string message;
  LogSource log;  // of the pod that failed
};

// What the pods of a job mean for it: which of them are replaced, and whether it has ended.
//
// Immutable. It reads its arguments at each call, and they outlive it.
class JobOutcome {
 public:
  // `status` has the completed replicas of this pass.
  JobOutcome(const TFJob& job, const std::vector<ReplicaPod>& pods, const JobStatus& status)
      : job_(job), pods_(pods), status_(status) {}

  // Whether the replica of the pod has work to do: the role has its index, and it has not
  // succeeded.
  bool IsWanted(const ReplicaPod& pod) const;
  // Whether containers of a wanted pod were restarted in place, and `status` does not count that.
  bool HasUncountedRestarts(const ReplicaPod& pod) const;
  // Whether the pod failed and the policy of its role replaces it.
  bool MustReplace(const ReplicaPod& pod) const;
  // Returns null if no pod must be replaced.
  const ReplicaPod* FirstToReplace() const;

  // Whether the role that decides runs, or, after its end, an evaluator that the job waits for.
  bool IsRunning() const;
  // Whether the role that decides has done its work, so that no failure matters any more.
  bool IsDecided() const;
  bool HasSucceeded() const;
  // The replicas of a role that never run again: they have succeeded, or failed for good.
  int64_t NumEnded(ReplicaType type) const;
  // A failure that is final under the policy of its role.
  std::optional<JobFailure> PermanentFailure() const;
  // Too many restarts: those in place of the pods that exist, and those that the status counts.
  std::optional<JobFailure> PastBackoffLimit() const;

 private:
  bool IsPermanent(const ReplicaPod& pod) const;
  int64_t PermanentFailures(ReplicaType type) const;
  bool MayLose(ReplicaType type, int64_t replicas) const;
  // Whether the role that decides has done its work according to `status`.
  bool HasTrained(const JobStatus& status) const;
  bool HaveWorkersTrained(const JobStatus& status) const;
  bool HaveEvaluatorsEnded() const;

  const TFJob& job_;
  const std::vector<ReplicaPod>& pods_;
  const JobStatus& status_;
};

}  // namespace edl::reconciler
