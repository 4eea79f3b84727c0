#include "reconciler/reconcile.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "reconciler/claim.h"
#include "reconciler/cleanup.h"
#include "reconciler/cluster_config.h"
#include "reconciler/job_outcome.h"
#include "reconciler/pod_group.h"
#include "reconciler/shard_plan.h"
#include <fmt/format.h>

#include "base/backoff.h"
#include "base/json.h"

namespace edl::reconciler {
namespace {

// A failed pod is replaced no sooner than this after its creation. The delay grows with the number
// of pods that were replaced before, so a program that fails at once is not started all the time,
// and one that ran for long is replaced at once.
constexpr BackoffLimits kReplaceBackoff{.first = std::chrono::seconds(1),
                                        .longest = std::chrono::minutes(5)};
// The same for a disrupted pod: a node may reject each pod that it gets.
constexpr std::chrono::seconds kDisruptedAge{10};
// The most bytes of pods to create in one pass. All further ones are created in the next.
constexpr size_t kMostBytes = size_t{64} << 20;

// Linux starts no process with a longer variable (MAX_ARG_STRLEN): name, "=", value and a zero.
constexpr size_t kLongestVariable = 131'072;

// Whether the pod is lost without a fault of its program.
bool IsDisrupted(const ReplicaPod& pod) {
  return pod.outcome == PodOutcome::kDisrupted || pod.outcome == PodOutcome::kTerminating;
}

// One pass over one job. Confined to the call of Reconcile.
class Pass {
 public:
  Pass(const Observed& observed, const Settings& settings, WallTime now)
      : observed_(observed),
        job_(observed.job),
        settings_(settings),
        now_(now),
        own_(Claim(observed)),
        cleanup_(observed, own_, now, plan_),
        shards_(observed, settings, now, cleanup_, plan_),
        outcome_(job_, own_.pods, plan_.status) {
    plan_.status = job_.status;
    plan_.actions = own_.actions;
    shards_.ReadProgress();
  }

  Plan Reject(const std::string& why) {
    plan_.actions.clear();  // it gets no pods
    if (status().conditions.finished()) {
      cleanup_.AfterEnd();
      return std::move(plan_);
    }
    EnsureCreated();
    const std::string message = fmt::format("TFJob {} is not valid: {}", job_.key, why);
    Set(kFailed, true, "TFJobFailedValidation", message);
    Note(kube::EventType::kWarning, "TFJobFailedValidation", message);
    plan_.milestones.failed = true;
    Finish();
    return std::move(plan_);
  }

  Plan Run() {
    if (status().conditions.finished()) {
      cleanup_.AfterEnd();
      shards_.AfterEnd();
      return std::move(plan_);
    }
    EnsureCreated();
    if (job_.suspended) {
      Suspend();
    } else {
      Advance();
    }
    return std::move(plan_);
  }

 private:
  JobStatus& status() { return plan_.status; }
  bool Set(std::string_view type, bool is_true, std::string_view reason, std::string message) {
    return status().conditions.Set(type, is_true, reason, std::move(message), now_);
  }
  void EnsureCreated() {
    plan_.milestones.created = status().conditions.EnsureCreated(
        "TFJobCreated", fmt::format("TFJob {} is created.", job_.key.name), now_);
  }
  // An event about a change.
  void Note(kube::EventType type, std::string reason, std::string message) {
    plan_.events.push_back({type, std::move(reason), std::move(message), ""});
  }
  // An event about a state of `subject`.
  void NoteState(kube::EventType type, std::string reason, std::string message,
                 std::string subject) {
    plan_.events.push_back({type, std::move(reason), std::move(message), std::move(subject)});
  }

  void Suspend();
  void Advance();

  // The state of the job.
  void Resume();
  void RecordCompleted(ReplicaType type);
  void CountRole(ReplicaType type);
  void ForgetLostRoles();
  void NoteProblems();
  std::string RestartingMessage(const ReplicaPod& failed) const;
  bool PastDeadline();
  std::optional<JobFailure> TooLongConfig() const;
  void Succeed();
  void Fail(const JobFailure& failure);
  void Finish();

  // Replicas.
  std::vector<const ReplicaPod*> CountFailures();
  void CountRestarts(const ReplicaPod& pod);
  void CountRestartsOfDisrupted();
  void ForgetGonePods();
  void NoteRestarts(const std::vector<const ReplicaPod*>& failed);
  void ReplaceFailed();
  void NoteDisruption(const ReplicaPod& pod);
  void ReplaceDisrupted();
  void FreeNames();
  void DropExtra();
  void DropSuspended();
  // Deletes the pod when it is old enough.
  void DeletePodAfter(const ReplicaPod& pod, Duration age);
  bool SyncPodGroup();
  void FillSlots();
  void FillSlotsOf(ReplicaType type, size_t& bytes);

  const Observed& observed_;
  const TFJob& job_;
  const Settings& settings_;
  const WallTime now_;
  const Claimed own_;
  Plan plan_;
  Cleanup cleanup_;
  ShardPlan shards_;
  const JobOutcome outcome_;
};

void Pass::Suspend() {
  ForgetLostRoles();
  for (const auto& [type, spec] : job_.replicas) RecordCompleted(type);
  for (auto& [type, counts] : status().replicas) {
    counts = {.succeeded = status().NumCompleted(type)};
  }
  CountFailures();
  for (const ReplicaPod& pod : own_.pods) CountRestarts(pod);
  ForgetGonePods();
  cleanup_.DeleteAll();
  const std::string message = fmt::format("TFJob {} is suspended.", job_.key.name);
  if (status().conditions.IsTrue(kRunning)) Set(kRunning, false, "TFJobSuspended", message);
  if (Set(kSuspended, true, "TFJobSuspended", message)) {
    Note(kube::EventType::kNormal, "TFJobSuspended", message);
  }
}

void Pass::Resume() {
  if (status().conditions.IsTrue(kSuspended)) {
    const std::string message = fmt::format("TFJob {} is resumed.", job_.key.name);
    Set(kSuspended, false, "TFJobResumed", message);
    Note(kube::EventType::kNormal, "TFJobResumed", message);
    status().start_time = now_;
  }
  if (!status().start_time) status().start_time = now_;
}

// Remembers the replicas that have succeeded, and forgets those that the role lost by scaling down.
void Pass::RecordCompleted(ReplicaType type) {
  const int replicas = job_.replicas.at(type).replicas;
  std::set<int> completed = status().completed[type];
  completed.erase(completed.lower_bound(replicas), completed.end());
  for (const ReplicaPod& pod : own_.pods) {
    if (pod.slot.type != type || pod.slot.index >= replicas) continue;
    if (pod.outcome != PodOutcome::kSucceeded || completed.contains(pod.slot.index)) continue;
    // Its containers are not watched any more; a sidecar may be restarted again and again.
    if (outcome_.HasUncountedRestarts(pod)) status().retries += pod.restarts;
    completed.insert(pod.slot.index);
  }
  if (completed.empty()) {
    status().completed.erase(type);
  } else {
    status().completed[type] = std::move(completed);
  }
}

void Pass::CountRole(ReplicaType type) {
  RecordCompleted(type);
  ReplicaCounts counts{.succeeded = status().NumCompleted(type)};
  for (const ReplicaPod& pod : own_.pods) {
    if (pod.slot.type != type) continue;
    if (pod.exit_code) {
      NoteState(
          kube::EventType::kNormal, "ExitedWithCode",
          fmt::format("Pod: {}.{} exited with code {}", job_.key.ns, pod.name, *pod.exit_code),
          pod.uid);
    }
    if (status().IsCompleted(type, pod.slot.index)) continue;
    if (pod.outcome == PodOutcome::kActive) ++counts.active;
    if (pod.outcome == PodOutcome::kFailed) ++counts.failed;
  }
  status().replicas[type] = counts;
}

void Pass::ForgetLostRoles() {
  std::erase_if(status().replicas, [&](const auto& entry) { return !job_.has(entry.first); });
  std::erase_if(status().completed, [&](const auto& entry) { return !job_.has(entry.first); });
}

void Pass::NoteProblems() {
  for (std::string& mistake : job_.AnnotationMistakes()) {
    NoteState(kube::EventType::kWarning, "InvalidAnnotation", std::move(mistake), job_.uid);
  }
  for (const ReplicaPod& pod : own_.pods) {
    if (pod.problem_reason.empty()) continue;
    NoteState(kube::EventType::kWarning, pod.problem_reason, pod.reason, pod.uid);
  }
}

std::string Pass::RestartingMessage(const ReplicaPod& failed) const {
  return fmt::format("job {} is restarting because {} replica(s) failed.", job_.key.name,
                     NameOf(failed.slot.type));
}

// Counts each failed pod once, however many passes see it. Returns those that were not counted
// before.
std::vector<const ReplicaPod*> Pass::CountFailures() {
  std::vector<const ReplicaPod*> counted;
  for (const ReplicaPod& pod : own_.pods) {
    if (!outcome_.MustReplace(pod) || !status().replacing.insert(pod.uid).second) continue;
    status().retries += 1 + pod.restarts;
    counted.push_back(&pod);
  }
  return counted;
}

// Counts the restarts of a pod that will be gone soon.
void Pass::CountRestarts(const ReplicaPod& pod) {
  if (!outcome_.HasUncountedRestarts(pod)) return;
  status().retries += pod.restarts;
  status().replacing.insert(pod.uid);
}

void Pass::CountRestartsOfDisrupted() {
  for (const ReplicaPod& pod : own_.pods) {
    if (IsDisrupted(pod) && outcome_.HasUncountedRestarts(pod)) {
      NoteDisruption(pod);
      CountRestarts(pod);
    }
  }
}

void Pass::ForgetGonePods() {
  std::set<std::string> uids;
  for (const ReplicaPod& pod : own_.pods) uids.insert(pod.uid);
  std::erase_if(status().replacing, [&](const auto& uid) { return !uids.contains(uid); });
}

void Pass::NoteRestarts(const std::vector<const ReplicaPod*>& failed) {
  for (const ReplicaPod* pod : failed) {
    plan_.milestones.restarted = true;
    if (plan_.failed_log.pod.empty()) plan_.failed_log = LogOf(*pod);
    Note(kube::EventType::kWarning, "TFJobRestarting",
         fmt::format("{} Pod {}: {}.", RestartingMessage(*pod), pod->name, pod->reason));
  }
}

void Pass::DeletePodAfter(const ReplicaPod& pod, Duration age) {
  // Our clock was set back if the pod was created in the future. Then its age is not known.
  const WallTime due = pod.created + age;
  if (due > now_ && pod.created <= now_) {
    plan_.ReconcileAgainAt(due);
  } else {
    cleanup_.DeletePod(pod);
  }
}

void Pass::ReplaceFailed() {
  const int64_t before = status().retries - static_cast<int64_t>(status().replacing.size());
  const Duration age = kReplaceBackoff.After(static_cast<int>(std::clamp<int64_t>(before, 0, 30)));
  for (const ReplicaPod& pod : own_.pods) {
    if (outcome_.MustReplace(pod)) DeletePodAfter(pod, age);
  }
}

void Pass::NoteDisruption(const ReplicaPod& pod) {
  NoteState(kube::EventType::kNormal, "ReplacingPod",
            fmt::format("Replica {} is replaced: {}. This does not count as a retry.", pod.name,
                        pod.reason),
            pod.uid);
}

void Pass::ReplaceDisrupted() {
  for (const ReplicaPod& pod : own_.pods) {
    if (!IsDisrupted(pod)) continue;
    if (outcome_.IsWanted(pod) && !status().replacing.contains(pod.uid)) NoteDisruption(pod);
    if (pod.outcome == PodOutcome::kDisrupted) {
      DeletePodAfter(pod, kDisruptedAge);
    } else {
      cleanup_.DeletePod(pod);
    }
  }
}

// The pod of a deleted job of the same name keeps the name of a replica while its node is lost.
void Pass::FreeNames() {
  for (const ReplicaPod& pod : observed_.pods) {
    const bool has_its_name = pod.name == ReplicaName(job_.key.name, pod.slot.type, pod.slot.index);
    if (has_its_name && IsOfDeletedJob(pod, job_) && outcome_.IsWanted(pod)) {
      cleanup_.ForceFromLostNode(pod);
    }
  }
}

// Deletes replicas beyond the number that the job wants, and those of roles that it lost.
void Pass::DropExtra() {
  const auto is_extra = [&](const Slot& slot) {
    const auto spec = job_.replicas.find(slot.type);
    return spec == job_.replicas.end() || slot.index >= spec->second.replicas;
  };
  for (const ReplicaPod& pod : own_.pods) {
    if (is_extra(pod.slot) && !pod.deletion_time) cleanup_.DeletePod(pod);
  }
  for (const ReplicaService& service : own_.services) {
    if (is_extra(service.slot)) cleanup_.DeleteService(service);
  }
}

// Deletes pods whose restarts were counted for a suspension, if an operator died before it had
// deleted them and the job was resumed. Further restarts of them would not be counted.
void Pass::DropSuspended() {
  for (const ReplicaPod& pod : own_.pods) {
    const bool lives = pod.outcome == PodOutcome::kPending || pod.outcome == PodOutcome::kActive;
    if (lives && status().replacing.contains(pod.uid)) cleanup_.DeletePod(pod);
  }
}

// Returns false if pods must not be created yet.
bool Pass::SyncPodGroup() {
  const std::string& scheduler = settings_.pods.gang_scheduler;
  if (scheduler.empty()) return true;
  std::map<ReplicaType, int64_t> ended;
  for (const auto& [type, spec] : job_.replicas) ended[type] = outcome_.NumEnded(type);
  const kube::Object wanted = MakePodGroup(job_, ended, scheduler, settings_.priorities);
  if (HasOtherScheduler(job_, scheduler)) {
    NoteState(kube::EventType::kWarning, "SetPodTemplateSchedulerName",
              "Another scheduler is specified when gang-scheduling is enabled and it will not be "
              "overwritten",
              job_.uid);
  }
  if (!observed_.pod_group) {
    plan_.actions.push_back({.kind = Action::Kind::kCreatePodGroup, .object = wanted});
    return scheduler != "volcano";
  }
  const auto owner = ControllerOf(*observed_.pod_group);
  const bool of_earlier_job = owner && owner->kind == kTFJobs.kind &&
                              owner->name == job_.key.name && owner->uid != job_.uid;
  if (of_earlier_job || observed_.pod_group->deleting()) {
    // It will be gone soon, which is an event. It has not been admitted for this job.
    return scheduler != "volcano";
  }
  if (owner && owner->uid == job_.uid) {
    if (auto updated = UpdatedPodGroup(*observed_.pod_group, wanted)) {
      plan_.actions.push_back(
          {.kind = Action::Kind::kUpdatePodGroup, .object = std::move(*updated)});
    }
  }
  return !IsWaiting(*observed_.pod_group);
}

void Pass::FillSlots() {
  size_t bytes = 0;
  for (const auto& [type, spec] : job_.replicas) FillSlotsOf(type, bytes);
}

void Pass::FillSlotsOf(ReplicaType type, size_t& bytes) {
  const ReplicaSpec& spec = job_.replicas.at(type);
  std::set<int> pods;
  for (const ReplicaPod& pod : own_.pods) {
    if (pod.slot.type == type) pods.insert(pod.slot.index);
  }
  std::set<int> services;
  for (const ReplicaService& service : own_.services) {
    if (service.slot.type == type) services.insert(service.slot.index);
  }
  if (pods.empty() && HasTemplateRestartPolicy(spec)) {
    NoteState(kube::EventType::kWarning, "SetPodTemplateRestartPolicy",
              "Restart policy in pod template will be overwritten by restart policy in replica "
              "spec",
              job_.uid);
  }
  size_t pod_size = 0;
  for (int i = 0; i < spec.replicas; ++i) {
    if (status().IsCompleted(type, i)) continue;
    const bool has_service = services.contains(i);
    const bool has_pod = pods.contains(i);
    if (has_service && has_pod) continue;
    if (pod_size == 0) pod_size = ApproximatePodSize(job_, type);
    bytes += pod_size;
    if (bytes > kMostBytes && bytes > pod_size)
      return plan_.ReconcileAgainAt(now_ + std::chrono::seconds(1));
    if (!has_service) {
      plan_.actions.push_back(
          {.kind = Action::Kind::kCreateService, .object = MakeService(job_, type, i)});
    }
    if (!has_pod) {
      plan_.actions.push_back(
          {.kind = Action::Kind::kCreatePod, .object = MakePod(job_, type, i, settings_.pods)});
    }
  }
}

bool Pass::PastDeadline() {
  if (!job_.deadline || !status().start_time) return false;
  const WallTime end = *status().start_time + *job_.deadline;
  if (end <= now_) return true;
  plan_.ReconcileAgainAt(end);
  return false;
}

std::optional<JobFailure> Pass::TooLongConfig() const {
  const size_t length = std::string_view("TF_CONFIG=").size() + 1 +
                        LongestClusterConfig(job_, settings_.pods.cluster_domain);
  if (length <= kLongestVariable) return std::nullopt;
  return JobFailure{
      .type = kube::EventType::kWarning,
      .message = fmt::format(
          "TFJob {} has failed because its {} replicas cannot start: the variable TF_CONFIG with "
          "all their addresses has {} bytes, and Linux allows {}. {}.",
          job_.key, job_.total_replicas(), length, kLongestVariable,
          job_.dynamic_workers ? "Use fewer parameter servers"
                               : "Use fewer replicas, or enableDynamicWorker: true, with which "
                                 "TF_CONFIG has only the addresses of the parameter servers"),
      .log = {}};
}

void Pass::Succeed() {
  const std::string message = fmt::format("TFJob {} successfully completed.", job_.key);
  Set(kSucceeded, true, "TFJobSucceeded", message);
  Note(kube::EventType::kNormal, "TFJobSucceeded", message);
  plan_.milestones.succeeded = true;
  for (auto& [type, counts] : status().replicas) {
    counts.succeeded += counts.active;
    counts.active = 0;
  }
  Finish();
}

void Pass::Fail(const JobFailure& failure) {
  Set(kFailed, true, "TFJobFailed", failure.message);
  Note(failure.type, "TFJobFailed", failure.message);
  if (!failure.log.pod.empty()) plan_.failed_log = failure.log;
  plan_.milestones.failed = true;
  Finish();
}

void Pass::Finish() {
  status().completion_time = now_;
  status().replacing.clear();
  plan_.again_at.reset();
  cleanup_.AfterEnd();
  shards_.AfterEnd();
}

void Pass::Advance() {
  Resume();
  ForgetLostRoles();
  for (const auto& [type, spec] : job_.replicas) CountRole(type);
  NoteProblems();
  if (outcome_.IsRunning() && !outcome_.FirstToReplace()) {
    Set(kRunning, true, "TFJobRunning", fmt::format("TFJob {} is running.", job_.key));
  }
  if (outcome_.HasSucceeded()) return Succeed();
  const bool decided = outcome_.IsDecided();
  if (!decided) {
    if (const auto failure = TooLongConfig()) return Fail(*failure);
    if (const auto failure = outcome_.PermanentFailure()) return Fail(*failure);
    if (const auto failure = shards_.Failure()) return Fail(*failure);
  }
  const auto failed = CountFailures();
  CountRestartsOfDisrupted();
  if (const auto failure = outcome_.PastBackoffLimit()) {
    // The model is trained. Only an evaluator that fails again and again was still waited for.
    return decided ? Succeed() : Fail(*failure);
  }
  NoteRestarts(failed);
  if (PastDeadline()) {
    if (decided) return Succeed();  // as above
    return Fail({.message = fmt::format(
                     "Job {} has failed because it was active longer than specified deadline",
                     job_.key.name)});
  }
  if (const ReplicaPod* failed = outcome_.FirstToReplace()) {
    Set(kRestarting, true, "TFJobRestarting", RestartingMessage(*failed));
  }
  ForgetGonePods();
  ReplaceFailed();
  ReplaceDisrupted();
  FreeNames();
  DropExtra();
  DropSuspended();
  shards_.Ensure();
  if (SyncPodGroup()) FillSlots();
}

}  // namespace

std::optional<ReplicaService> ReadService(const kube::Object& service) {
  const auto slot = SlotOf(service);
  if (!slot) return std::nullopt;
  return ReplicaService{.name = service.name(),
                        .uid = service.uid(),
                        .slot = *slot,
                        .job = service.label(kJobNameLabel).value_or(""),
                        .owner = ControllerOf(service).value_or(kube::OwnerReference()).uid,
                        .deleting = service.deleting()};
}

Plan Reconcile(const Observed& observed, const Settings& settings, WallTime now) {
  return Pass(observed, settings, now).Run();
}

Plan ReconcileDeletion(const Observed& observed, WallTime now) {
  Plan plan;
  plan.status = observed.job.status;
  const Claimed none;
  const Settings settings;
  Cleanup cleanup(observed, none, now, plan);
  for (const ReplicaPod& pod : observed.pods) {
    if (pod.owner == observed.job.uid) cleanup.ForceFromLostNode(pod);
  }
  ShardPlan(observed, settings, now, cleanup, plan).DuringDeletion();
  return plan;
}

Plan RejectInvalid(const Observed& observed, const std::string& why, WallTime now) {
  return Pass(observed, Settings(), now).Reject(why);
}

}  // namespace edl::reconciler
