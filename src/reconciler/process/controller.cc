#include "reconciler/process/controller.h"

#include <algorithm>
#include <set>
#include <utility>

#include "reconciler/job_status.h"
#include "reconciler/write_order.h"
#include <fmt/format.h>

#include "base/json.h"

namespace edl::reconciler {

JobController::JobController(JobCache& cache, ClusterWriter& writer, kube::EventRecorder& recorder,
                             OperatorMetrics& metrics, const Clock& clock, PodSettings settings,
                             ShardSettings shards)
    : cache_(cache),
      writer_(writer),
      recorder_(recorder),
      metrics_(metrics),
      clock_(clock),
      settings_(std::move(settings)),
      shards_(std::move(shards)) {}

void JobController::SetPriorities(std::map<std::string, int64_t> priorities) {
  const MutexLock lock(mutex_);
  priorities_ = std::move(priorities);
}

Settings JobController::CurrentSettings() {
  const MutexLock lock(mutex_);
  return {.pods = settings_, .priorities = priorities_, .shards = shards_};
}

JobController::Memory& JobController::MemoryOf(const kube::Object& job) {
  Memory& memory = memories_[job.key()];
  if (memory.uid != job.uid()) {
    memory = {};
    memory.uid = job.uid();
  }
  return memory;
}

void JobController::Forget(const kube::ObjectKey& key) {
  const MutexLock lock(mutex_);
  memories_.erase(key);
}

void JobController::UseOwnClock(const kube::Object& job, ShardService& shards) {
  if (!shards.pod || !shards.pod->deletion_time) return;
  const MutexLock lock(mutex_);
  Memory& memory = MemoryOf(job);
  if (memory.deleted_shards != shards.pod->uid) {
    memory.deleted_shards = shards.pod->uid;
    memory.shards_end = clock_.WallNow() + shards.deletion_grace;
  }
  shards.pod->deletion_time = memory.shards_end;
}

void JobController::RecordEvents(const kube::Object& job, const std::vector<JobEvent>& events) {
  for (const JobEvent& event : events) {
    const bool is_state = !event.subject.empty();
    if (is_state) {
      const MutexLock lock(mutex_);
      if (!MemoryOf(job).recorded.IsNew(event)) continue;
    }
    const bool queued = recorder_.Record(job, event.type, event.reason, event.message);
    if (!is_state || !queued) continue;
    const MutexLock lock(mutex_);
    MemoryOf(job).recorded.Add(event);
  }
}

void JobController::ForgetGonePods(const kube::Object& job, const Observed& observed) {
  const MutexLock lock(mutex_);
  RecordedEvents& recorded = MemoryOf(job).recorded;
  if (recorded.size() == 0) return;
  std::set<std::string> subjects;
  // No pass over a job that has ended has an event about a state.
  if (!observed.job.status.conditions.finished()) {
    subjects.insert(observed.job.uid);
    for (const ReplicaPod& pod : observed.pods) subjects.insert(pod.uid);
    if (observed.shards && observed.shards->pod) subjects.insert(observed.shards->pod->uid);
  }
  recorded.KeepOnly(subjects);
}

void JobController::ExplainFailure(const kube::Object& job, Plan& plan,
                                   const std::stop_token& stop) {
  const LogSource& log = plan.failed_log;
  if (log.pod.empty()) return;
  const std::string lines = writer_.LastLogLines(job.ns(), log, stop);
  if (lines.empty()) return;
  const std::string of = log.container == kContainerName
                             ? fmt::format("pod {}", log.pod)
                             : fmt::format("container {} of pod {}", log.container, log.pod);
  const std::string text = fmt::format("The last lines of the log of {}:\n{}", of, lines);
  if (plan.milestones.failed) plan.status.conditions.AppendToMessage(kFailed, " " + text);
  plan.events.push_back({.type = kube::EventType::kWarning, .reason = "PodLog", .message = text});
}

std::optional<Time> JobController::StatusDueAt(const kube::Object& job, const JobStatus& stored,
                                               const JobStatus& next) {
  const Time now = clock_.Now();
  const MutexLock lock(mutex_);
  Memory& memory = MemoryOf(job);
  if (DifferOnlyInCounts(stored, next) && now < memory.counts_written + kCountsInterval) {
    return memory.counts_written + kCountsInterval;
  }
  memory.counts_written = now;
  return std::nullopt;
}

Plan JobController::PlanFor(CachedJob& found, Result<TFJob> job, std::optional<ShardService> shards,
                            WallTime now) {
  const Status parsed = job.status();
  const Observed observed{.job = parsed.ok() ? *std::move(job) : ParseRejected(found.object),
                          .pods = std::move(found.pods),
                          .services = std::move(found.services),
                          .pod_group = std::move(found.pod_group),
                          .shards = std::move(shards)};
  ForgetGonePods(found.object, observed);
  if (!parsed.ok()) return RejectInvalid(observed, parsed.message(), now);
  return Reconcile(observed, CurrentSettings(), now);
}

Result<std::optional<ShardService>> JobController::ReadShards(const kube::Object& object,
                                                              const TFJob& job,
                                                              const std::stop_token& stop) {
  if (!job.has_data_shards()) return std::optional<ShardService>();
  // Most jobs of a cluster have ended, and must not cost calls when the operator starts.
  const bool ends = job.deleting || job.status.conditions.finished();
  if (ends && !cache_.HasShardPod(job.key)) return std::optional<ShardService>();
  EDL_ASSIGN_OR_RETURN(ShardService read, writer_.ReadShards(object, stop));
  UseOwnClock(object, read);
  return std::optional(std::move(read));
}

JobController::Outcome JobController::SyncDeletion(CachedJob& found, const std::stop_token& stop) {
  Observed observed{.job = ParseRejected(found.object),
                    .pods = std::move(found.pods),
                    .services = {},
                    .pod_group = std::nullopt,
                    .shards = std::nullopt};
  auto shards = ReadShards(found.object, observed.job, stop);
  if (shards.ok()) observed.shards = *shards;
  const Plan plan = ReconcileDeletion(observed, clock_.WallNow());
  const Status acted = writer_.Run(found.object, plan.actions, stop);
  return {acted.ok() ? shards.status() : acted, plan.again_at};
}

JobController::Outcome JobController::Sync(const kube::ObjectKey& key,
                                           const std::stop_token& stop) {
  std::optional<CachedJob> found = cache_.Find(key);
  if (!found) {
    Forget(key);
    return {.status = Ok(), .gone = true};
  }
  const kube::Object& object = found->object;
  if (!ManagedByUs(object)) return {Ok()};
  if (object.deleting()) return SyncDeletion(*found, stop);
  const nlohmann::json& stored_json = FieldAt(object.fields(), {"status"});
  const JobStatus stored = ParseStatus(stored_json);
  Result<TFJob> job = ParseTFJob(object);
  std::optional<ShardService> shards;
  Status shards_read = Ok();
  if (job.ok()) {
    auto read = ReadShards(object, *job, stop);
    // The plan does without it, so that the job gets its pods and keeps its deadline.
    shards_read = read.status();
    if (read.ok()) shards = *std::move(read);
  }
  const WallTime now = clock_.WallNow();  // after the calls above, which take a while
  Plan plan = PlanFor(*found, std::move(job), std::move(shards), now);
  std::optional<WallTime> again = plan.again_at;
  const bool act_first = OrderOfWrites(plan, stored) == WriteOrder::kActionsFirst;
  Status acted = act_first ? writer_.Run(object, plan.actions, stop) : Ok();
  if (!(plan.status == stored)) {
    if (const auto due = StatusDueAt(object, stored, plan.status)) {
      const WallTime due_wall = now + (*due - clock_.Now());
      again = again ? std::min(*again, due_wall) : due_wall;
    } else {
      ExplainFailure(object, plan, stop);
      const Status written =
          writer_.WriteStatus(object, StatusJson(plan.status, stored_json), stop);
      // The job was deleted, and its children will be, too. Or this server does not serve the CRD.
      if (written.code() == Code::kNotFound) {
        const WallTime later = now + kLookForJob;
        return {Ok(), again ? std::min(*again, later) : later};
      }
      if (written.code() == Code::kFailedPrecondition) {
        RecordEvents(object, {{.type = kube::EventType::kWarning,
                               .reason = "StatusNotKept",
                               .message = written.message(),
                               .subject = object.uid()}});
      }
      if (!written.ok()) return {written, again};
      metrics_.Count(key.ns, plan.milestones);
    }
  }
  RecordEvents(object, plan.events);
  if (!act_first) acted = writer_.Run(object, plan.actions, stop);
  if (!acted.ok()) return {acted, again};
  const bool expired =
      std::any_of(plan.actions.begin(), plan.actions.end(),
                  [](const Action& each) { return each.kind == Action::Kind::kDeleteJob; });
  if (expired) metrics_.CountDeletion(key.ns);
  return {shards_read, again};
}

}  // namespace edl::reconciler
