#include "reconciler/shard_plan.h"

#include <algorithm>

#include <fmt/format.h>

namespace edl::reconciler {

void ShardPlan::ReadProgress() {
  // The pod of a deleted job of the same name has the progress of that job.
  if (!shards_ || !shards_->pod || !IsOurs(*shards_->pod)) return;
  if (!shards_->progress.empty()) plan_.status.progress = shards_->progress;
}

std::optional<JobFailure> ShardPlan::Failure() const {
  if (!shards_ || !shards_->pod || !IsOurs(*shards_->pod) || shards_->failure.empty()) {
    return std::nullopt;
  }
  return JobFailure{.type = kube::EventType::kWarning,
                    .message = fmt::format("TFJob {} has failed because its data-shard service "
                                           "ended: {}",
                                           job_.key, shards_->failure),
                    .log = {}};
}

// The pod is created last: if it exists, its secret has been created, which cannot be observed.
void ShardPlan::Create() {
  plan_.actions.push_back({.kind = Action::Kind::kCreateSecret,
                           .object = MakeShardSecret(job_, settings_.new_token()),
                           .first = true});
  CreateNetworkService();
  plan_.actions.push_back(
      {.kind = Action::Kind::kCreatePod, .object = MakeShardPod(job_, settings_.image)});
}

void ShardPlan::CreateNetworkService() {
  if (shards_->has_service) return;
  plan_.actions.push_back({.kind = Action::Kind::kCreateService,
                           .object = MakeShardNetworkService(job_),
                           .first = true});
}

void ShardPlan::Ensure() {
  if (!job_.has_data_shards()) return;
  plan_.ReconcileAgainAt(now_ + kReadProgressEvery);
  if (!shards_) return;
  if (!shards_->pod) return Create();
  const ReplicaPod& pod = *shards_->pod;
  if (!IsOurs(pod)) {
    if (IsOfDeletedJob(pod, job_)) cleanup_.ForceFromLostNode(pod);
    // The pod of a deleted job of the same name will be deleted, too, unless the job was deleted
    // without its pods.
    if (pod.job == job_.key.name && (!pod.owner.empty() || pod.deletion_time)) return;
    plan_.events.push_back(
        {.type = kube::EventType::kWarning,
         .reason = "DataShardsNameTaken",
         .message = fmt::format("Pod {} does not belong to this job, so the job has no data-shard "
                                "service. Delete the pod, or give the job another name.",
                                pod.name),
         .subject = pod.uid});
    return;
  }
  if (!pod.problem_reason.empty()) {
    plan_.events.push_back({.type = kube::EventType::kWarning,
                            .reason = pod.problem_reason,
                            .message = pod.reason,
                            .subject = pod.uid});
  }
  CreateNetworkService();
  if (pod.terminal || pod.deletion_time) cleanup_.DeletePod(pod);
}

void ShardPlan::AfterEnd() {
  if (!shards_ || !shards_->pod || !IsOurs(*shards_->pod)) return;
  const WallTime due = plan_.status.completion_time.value_or(now_) + kKeptAfterEnd;
  if (due <= now_) return cleanup_.DeletePod(*shards_->pod);
  plan_.ReconcileAgainAt(std::min<WallTime>(due, now_ + kReadProgressEvery));
}

// No watch reports the state of the pod.
void ShardPlan::DuringDeletion() {
  if (!shards_ || !shards_->pod || !IsOurs(*shards_->pod)) return;
  plan_.ReconcileAgainAt(now_ + kReadProgressEvery);
  cleanup_.ForceFromLostNode(*shards_->pod);
}

}  // namespace edl::reconciler
