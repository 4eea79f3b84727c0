#include "reconciler/job_outcome.h"

#include <algorithm>

#include <fmt/format.h>

namespace edl::reconciler {

bool JobOutcome::IsWanted(const ReplicaPod& pod) const {
  const auto spec = job_.replicas.find(pod.slot.type);
  return spec != job_.replicas.end() && pod.slot.index < spec->second.replicas &&
         !status_.IsCompleted(pod.slot.type, pod.slot.index);
}

bool JobOutcome::IsPermanent(const ReplicaPod& pod) const {
  if (pod.outcome != PodOutcome::kFailed || !IsWanted(pod)) return false;
  switch (job_.replicas.at(pod.slot.type).restart) {
    case RestartPolicy::kNever:
      return true;
    case RestartPolicy::kExitCode:
      return pod.exit_code && !IsRetryable(*pod.exit_code);
    case RestartPolicy::kOnFailure:
    case RestartPolicy::kAlways:
      return false;
  }
  return true;
}

bool JobOutcome::MustReplace(const ReplicaPod& pod) const {
  return pod.outcome == PodOutcome::kFailed && IsWanted(pod) && !IsPermanent(pod);
}

const ReplicaPod* JobOutcome::FirstToReplace() const {
  const auto found = std::find_if(pods_.begin(), pods_.end(),
                                  [&](const ReplicaPod& pod) { return MustReplace(pod); });
  return found == pods_.end() ? nullptr : &*found;
}

int64_t JobOutcome::PermanentFailures(ReplicaType type) const {
  return std::count_if(pods_.begin(), pods_.end(), [&](const ReplicaPod& pod) {
    return pod.slot.type == type && IsPermanent(pod);
  });
}

int64_t JobOutcome::NumEnded(ReplicaType type) const {
  return status_.NumCompleted(type) + PermanentFailures(type);
}

// Whether the job goes on without this many replicas of a role.
bool JobOutcome::MayLose(ReplicaType type, int64_t replicas) const {
  if (!job_.dynamic_workers || type != ReplicaType::kWorker) return false;
  const ReplicaSpec& workers = job_.replicas.at(type);
  // An exit code that is final ends the job, as upstream does, unless a minimum says otherwise.
  const std::optional<int> least = job_.min_workers();
  if (workers.restart == RestartPolicy::kExitCode && !least) return false;
  return workers.replicas - replicas >= least.value_or(1);
}

std::optional<JobFailure> JobOutcome::PermanentFailure() const {
  for (const ReplicaType type : kReplicaTypes) {
    const int64_t failed = PermanentFailures(type);
    if (failed == 0 || MayLose(type, failed)) continue;
    const auto pod = std::find_if(pods_.begin(), pods_.end(), [&](const ReplicaPod& each) {
      return each.slot.type == type && IsPermanent(each);
    });
    const std::string why = fmt::format(" Pod {}: {}.", pod->name, pod->reason);
    if (job_.replicas.at(type).restart == RestartPolicy::kExitCode) {
      return JobFailure{
          .type = kube::EventType::kWarning,
          .message = fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.{}",
                                 job_.key.name, NameOf(type), why),
          .log = LogOf(*pod)};
    }
    return JobFailure{
        .message = fmt::format("TFJob {} has failed because {} {} replica(s) failed.{}", job_.key,
                               failed, NameOf(type), why),
        .log = LogOf(*pod)};
  }
  return std::nullopt;
}

bool JobOutcome::HasUncountedRestarts(const ReplicaPod& pod) const {
  return pod.restarts > 0 && IsWanted(pod) && !status_.replacing.contains(pod.uid) &&
         job_.replicas.at(pod.slot.type).restart != RestartPolicy::kNever;
}

std::optional<JobFailure> JobOutcome::PastBackoffLimit() const {
  if (!job_.backoff_limit) return std::nullopt;
  int64_t retries = status_.retries;
  const ReplicaPod* last = FirstToReplace();
  for (const ReplicaPod& pod : pods_) {
    if (!HasUncountedRestarts(pod)) continue;
    retries += pod.restarts;
    if (last == nullptr) last = &pod;
  }
  const int64_t limit = std::max<int64_t>(*job_.backoff_limit, 0);
  if (limit == 0 ? retries == 0 : retries < limit) return std::nullopt;
  JobFailure out{
      .message = fmt::format("Job {} has failed because it has reached the specified backoff limit",
                             job_.key.name)};
  if (last != nullptr) {
    const std::string& why = last->last_exit.empty() ? last->reason : last->last_exit;
    out.message += fmt::format(". Pod {}", last->name);
    if (!why.empty()) out.message += fmt::format(": {}", why);
    out.message += ".";
    out.log = LogOf(*last);
  }
  return out;
}

bool JobOutcome::HaveWorkersTrained(const JobStatus& status) const {
  if (!job_.has(ReplicaType::kWorker)) return false;
  const int64_t wanted = job_.replicas.at(ReplicaType::kWorker).replicas;
  const int64_t succeeded = status.NumCompleted(ReplicaType::kWorker);
  const int64_t lost = job_.dynamic_workers ? PermanentFailures(ReplicaType::kWorker) : 0;
  if (succeeded > 0 && succeeded + lost >= wanted) return true;
  return !job_.all_workers_must_succeed && status.IsCompleted(ReplicaType::kWorker, 0);
}

bool JobOutcome::HasTrained(const JobStatus& status) const {
  const auto chief = job_.chief();
  if (!chief) return HaveWorkersTrained(status);
  return status.NumCompleted(*chief) >= job_.replicas.at(*chief).replicas;
}

// The chief decides. If the workers do, one that fails outweighs those that succeed at the same
// time, but not those that succeeded before.
bool JobOutcome::IsDecided() const {
  return HasTrained(status_) && (job_.chief() || HasTrained(job_.status) || !PermanentFailure());
}

bool JobOutcome::HaveEvaluatorsEnded() const {
  if (!job_.has(ReplicaType::kEvaluator) || !job_.Option(kWaitForEvaluator, false)) return true;
  return NumEnded(ReplicaType::kEvaluator) >= job_.replicas.at(ReplicaType::kEvaluator).replicas;
}

bool JobOutcome::HasSucceeded() const { return IsDecided() && HaveEvaluatorsEnded(); }

bool JobOutcome::IsRunning() const {
  if (IsDecided() && HaveEvaluatorsEnded()) return false;
  const ReplicaType deciding =
      IsDecided() ? ReplicaType::kEvaluator : job_.chief().value_or(ReplicaType::kWorker);
  const auto found = status_.replicas.find(deciding);
  return found != status_.replicas.end() && found->second.active > 0;
}

}  // namespace edl::reconciler
