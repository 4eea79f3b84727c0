#include "reconciler/process/cluster_writer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "reconciler/replica_objects.h"

#include "base/json.h"
#include "base/retry.h"
#include "base/text.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ActionKind = Action::Kind;

constexpr int64_t kLogLines = 5;
constexpr int64_t kShardLogLines = 20;
// The API server ends a log after so many bytes from the first line that it was asked for, so a
// smaller limit would cut off the newest lines.
constexpr int64_t kLogBytes = int64_t{64} << 10;
constexpr size_t kMostLogText = 700;

// What an action is about.
struct Target {
  const kube::Resource* resource;
  const char* noun;     // in messages: "pod"
  const char* capital;  // in reasons: "Pod"
};

Target TargetOf(const Action& action) {
  switch (action.kind) {
    case ActionKind::kCreatePod:
    case ActionKind::kDeletePod:
    case ActionKind::kAdoptPod:
    case ActionKind::kReleasePod:
      return {&kube::kPods, "pod", "Pod"};
    case ActionKind::kCreateService:
    case ActionKind::kDeleteService:
    case ActionKind::kAdoptService:
    case ActionKind::kReleaseService:
      return {&kube::kServices, "service", "Service"};
    case ActionKind::kCreatePodGroup:
    case ActionKind::kUpdatePodGroup:
    case ActionKind::kDeletePodGroup:
      return {&kPluginPodGroups, "pod group", "PodGroup"};
    case ActionKind::kCreateSecret:
      return {&kube::kSecrets, "secret", "Secret"};
    case ActionKind::kDeleteJob:
      return {&kTFJobs, "job", "Job"};
  }
  return {&kTFJobs, "job", "Job"};
}

bool IsCreation(ActionKind kind) {
  return kind == ActionKind::kCreatePod || kind == ActionKind::kCreateService ||
         kind == ActionKind::kCreatePodGroup || kind == ActionKind::kCreateSecret;
}

bool IsDeletion(ActionKind kind) {
  return kind == ActionKind::kDeletePod || kind == ActionKind::kDeleteService ||
         kind == ActionKind::kDeletePodGroup || kind == ActionKind::kDeleteJob;
}

// Pods need their group, and a job must not be deleted before its children are handled: these
// actions are carried out alone.
bool IsAlone(const Action& action) {
  const ActionKind kind = action.kind;
  return action.first || kind == ActionKind::kCreatePodGroup ||
         kind == ActionKind::kUpdatePodGroup || kind == ActionKind::kDeletePodGroup ||
         kind == ActionKind::kDeleteJob;
}

bool IsControlledBy(const kube::Object& object, const kube::Object& job) {
  const auto controller = ControllerOf(object);
  return controller && controller->uid == job.uid();
}

// "name=value" of the first label by which `wanted` is found and that `stored` does not have.
// nullopt: it has them all.
std::optional<std::string> FirstOtherLabel(const kube::Object& wanted, const kube::Object& stored) {
  for (const char* name :
       {kOperatorNameLabel, kJobNameLabel, kReplicaTypeLabel, kReplicaIndexLabel}) {
    const auto value = wanted.label(name);
    if (value && stored.label(name) != value) return fmt::format("{}={}", name, *value);
  }
  return std::nullopt;
}

JobStatus StatusOf(const kube::Object& job) {
  return ParseStatus(FieldAt(job.fields(), {"status"}));
}

// Whether the server keeps what decisions about a job depend on. A job that has ended needs none.
bool IsKept(const JobStatus& sent, const JobStatus& stored) {
  return sent.conditions.finished() ||
         (sent.retries == stored.retries && sent.replacing == stored.replacing &&
          sent.completed == stored.completed);
}

// An exception of a library must not end the process.
Status RunOne(const std::function<Status(size_t)>& run, size_t at) {
  try {
    return run(at);
  } catch (const std::exception& error) {
    return Internal("{}", error.what());
  }
}

// Calls run(i) for each i in [first, last), on this thread and others. Returns the first error.
Status RunParallel(size_t first, size_t last, int threads,
                   const std::function<Status(size_t)>& run) {
  std::atomic<size_t> next{first};
  std::vector<Status> results(last - first, Ok());
  const auto work = [&] {
    for (size_t at = next++; at < last; at = next++) results[at - first] = RunOne(run, at);
  };
  {
    std::vector<std::jthread> pool;
    const size_t size = std::min<size_t>(static_cast<size_t>(threads), last - first);
    try {
      for (size_t i = 1; i < size; ++i) pool.emplace_back(work);
    } catch (const std::system_error&) {
      // A limit of threads is reached: those that have started, and this one, do the work.
    }
    work();
  }
  for (Status& result : results) {
    if (!result.ok()) return std::move(result);
  }
  return Ok();
}

}  // namespace

ClusterWriter::ClusterWriter(kube::Client& client, kube::Client& logs, JobCache& cache,
                             kube::EventRecorder& recorder, Options options)
    : client_(client),
      logs_(logs),
      cache_(cache),
      recorder_(recorder),
      options_(std::move(options)) {}

Status ClusterWriter::WriteStatus(const kube::Object& job, const json& status,
                                  const std::stop_token& stop) {
  if (!options_.may_write()) return Unavailable("this operator does not hold its lease");
  kube::Object next = job;
  next.fields()["status"] = status;
  const JobStatus sent = ParseStatus(status);
  const auto stored = client_.UpdateStatus(kTFJobs, next, stop);
  if (!stored.ok()) return ConfirmStatus(job, sent, stored.status(), stop);
  cache_.WroteJob(*stored);
  if (!IsKept(sent, StatusOf(*stored))) {
    return FailedPrecondition(
        "the CRD tfjobs.kubeflow.org in this cluster does not keep status.elasticdl: apply "
        "elasticdl/manifests/tfjob-operator/crd.yaml");
  }
  return Ok();
}

Status ClusterWriter::ConfirmStatus(const kube::Object& job, const JobStatus& sent,
                                    const Status& error, const std::stop_token& stop) {
  // An attempt whose answer was lost may have been carried out, and then the next one is a
  // conflict.
  if (error.code() != Code::kAborted && !IsUnreachable(error)) return error;
  const auto found = client_.Get(kTFJobs, job.key(), stop);
  if (!found.ok() || found->uid() != job.uid() || !(StatusOf(*found) == sent)) return error;
  cache_.FoundJob(*found);
  return Ok();
}

Status ClusterWriter::Run(const kube::Object& job, const std::vector<Action>& actions,
                          const std::stop_token& stop) {
  // The first writes are few, because an error such as an exceeded quota mostly concerns all.
  size_t batch = 2 * static_cast<size_t>(options_.parallel_writes);
  for (size_t first = 0; first < actions.size();) {
    size_t last = first + 1;
    if (!IsAlone(actions[first])) {
      while (last < actions.size() && last - first < batch && !IsAlone(actions[last])) ++last;
    }
    EDL_RETURN_IF_ERROR(RunParallel(first, last, options_.parallel_writes,
                                    [&](size_t i) { return Carry(job, actions[i], stop); }));
    first = last;
    batch *= 2;
  }
  return Ok();
}

Status ClusterWriter::Carry(const kube::Object& job, const Action& action,
                            const std::stop_token& stop) {
  // Writes that have not begun must not be sent after the lease is released.
  if (stop.stop_requested()) return Cancelled("the operator ends");
  if (!options_.may_write()) return Unavailable("this operator does not hold its lease");
  if (IsCreation(action.kind)) return CreateObject(job, action, stop);
  if (IsDeletion(action.kind)) return DeleteObject(job, action, stop);
  if (action.kind == ActionKind::kUpdatePodGroup) return UpdatePodGroup(action, stop);
  return ChangeOwner(job, action, stop);
}

const kube::Resource& ClusterWriter::ResourceOf(const Action& action) const {
  const kube::Resource& resource = *TargetOf(action).resource;
  return &resource == &kPluginPodGroups ? options_.pod_groups : resource;
}

void ClusterWriter::Remember(const Action& action, const kube::Object& written) {
  const kube::Resource* const resource = TargetOf(action).resource;
  if (resource == &kube::kPods) {
    cache_.WrotePod(written);
  } else if (resource == &kube::kServices) {
    cache_.WroteService(written);
  } else if (action.kind == ActionKind::kCreatePodGroup) {
    cache_.WrotePodGroup(written);
  }
}

void ClusterWriter::Found(const Action& action, const kube::Object& object) {
  const kube::Resource* const resource = TargetOf(action).resource;
  if (resource == &kube::kPods) {
    cache_.FoundPod(object);
  } else if (resource == &kube::kServices) {
    cache_.FoundService(object);
  } else if (action.kind == ActionKind::kCreatePodGroup) {
    cache_.WrotePodGroup(object);  // each event about a group leads to a new plan
  }
}

Status ClusterWriter::CreateObject(const kube::Object& job, const Action& action,
                                   const std::stop_token& stop) {
  const Target target = TargetOf(action);
  auto created = client_.Create(ResourceOf(action), action.object, stop);
  if (created.ok()) {
    Remember(action, *created);
    if (action.kind != ActionKind::kCreatePodGroup) {
      recorder_.Record(job, kube::EventType::kNormal,
                       fmt::format("SuccessfulCreate{}", target.capital),
                       fmt::format("Created {}: {}", target.noun, action.object.name()));
    }
    return Ok();
  }
  Status error = created.status();
  if (error.code() == Code::kAlreadyExists) {
    // The name of a secret contains the uid of its job, and the operator may not read secrets.
    if (action.kind == ActionKind::kCreateSecret) return Ok();
    error = ClaimExisting(job, action, error, stop);
  }
  if (error.ok() || error.code() == Code::kCancelled) return error;
  recorder_.Record(job, kube::EventType::kWarning, fmt::format("FailedCreate{}", target.capital),
                   fmt::format("Error creating: {}", error.message()));
  return error;
}

Status ClusterWriter::ClaimExisting(const kube::Object& job, const Action& action,
                                    const Status& error, const std::stop_token& stop) {
  auto found = client_.Get(ResourceOf(action), action.object.key(), stop);
  if (found.status().code() == Code::kNotFound) {
    return Aborted("{} was deleted just now; it is created again", action.object.key());
  }
  if (!found.ok()) return found.status();
  if (IsControlledBy(*found, job)) {
    const auto label = FirstOtherLabel(action.object, *found);
    if (label) {
      // The watch selects objects by their labels, so this one would never be seen.
      return FailedPrecondition(
          "{} belongs to this job, but does not have the label {}: restore the label, or delete "
          "the {}",
          action.object.key(), *label, TargetOf(action).noun);
    }
    Found(action, *found);
    return Ok();
  }
  if (found->deleting()) {
    return Aborted("{}: an object of the same name is being deleted; it is created after that",
                   action.object.key());
  }
  return FailedPrecondition(
      "{} and does not belong to this job: delete it, or give the job another name",
      error.message());
}

Status ClusterWriter::DeleteObject(const kube::Object& job, const Action& action,
                                   const std::stop_token& stop) {
  const Target target = TargetOf(action);
  const kube::ObjectKey key{job.ns(), action.name};
  if (action.kind == ActionKind::kDeletePodGroup) {
    recorder_.Record(job, kube::EventType::kNormal, "JobTerminated",
                     "Job has been terminated. Deleting PodGroup");
  }
  kube::DeleteOptions options{.uid = action.uid};
  if (action.kind == ActionKind::kDeleteJob) options.propagation = kube::Propagation::kBackground;
  if (action.force) options.grace = std::chrono::seconds(0);
  Status deleted = client_.DeleteExisting(ResourceOf(action), key, options, stop);
  if (deleted.code() == Code::kNotFound) {
    // Another client has deleted it, and the watch has not reported that, or has lost the event.
    if (action.kind == ActionKind::kDeletePod) cache_.MissedPod(key, action.uid);
    if (action.kind == ActionKind::kDeleteService) cache_.MissedService(key, action.uid);
    return Ok();
  }
  // Aborted: the object is gone, and another one has its name.
  if (deleted.ok() || deleted.code() == Code::kAborted) {
    if (action.kind == ActionKind::kDeletePod) cache_.DeletedPod(key, action.uid);
    if (action.kind == ActionKind::kDeleteService) cache_.DeletedService(key, action.uid);
    if (deleted.ok()) {
      recorder_.Record(job, kube::EventType::kNormal,
                       fmt::format("SuccessfulDelete{}", target.capital),
                       fmt::format("Deleted {}: {}", target.noun, action.name));
    }
    return Ok();
  }
  if (deleted.code() != Code::kCancelled) {
    recorder_.Record(job, kube::EventType::kWarning, fmt::format("FailedDelete{}", target.capital),
                     fmt::format("Error deleting: {}", deleted.message()));
  }
  return deleted;
}

Status ClusterWriter::CheckMayAdopt(const kube::Object& job, const std::stop_token& stop) {
  const auto found = client_.Get(kTFJobs, job.key(), stop);
  if (found.status().code() == Code::kNotFound || (found.ok() && found->uid() != job.uid())) {
    return Aborted("TFJob {} was deleted; its objects are not adopted", job.key());
  }
  if (!found.ok()) return found.status();
  if (found->deleting()) {
    return Aborted("TFJob {} is being deleted; its objects are not adopted", job.key());
  }
  return Ok();
}

Status ClusterWriter::ChangeOwner(const kube::Object& job, const Action& action,
                                  const std::stop_token& stop) {
  const bool adopt =
      action.kind == ActionKind::kAdoptPod || action.kind == ActionKind::kAdoptService;
  json owner = {{"uid", job.uid()}};
  if (adopt) {
    EDL_RETURN_IF_ERROR(CheckMayAdopt(job, stop));
    owner.update({{"apiVersion", kTFJobs.api_version()},
                  {"kind", kTFJobs.kind},
                  {"name", job.name()},
                  {"controller", true},
                  {"blockOwnerDeletion", true}});
  } else {
    owner["$patch"] = "delete";
  }
  // The uid is a precondition.
  const json patch = {
      {"metadata", {{"uid", action.uid}, {"ownerReferences", json::array({owner})}}}};
  auto changed = client_.Patch(*TargetOf(action).resource, {job.ns(), action.name}, patch,
                               {.type = kube::PatchType::kStrategic}, stop);
  const Code code = changed.status().code();
  // The object is gone, or another one has its name.
  if (code == Code::kNotFound || code == Code::kInvalidArgument || code == Code::kAborted) {
    return Ok();
  }
  if (!changed.ok()) return changed.status();
  Found(action, *changed);
  return Ok();
}

Status ClusterWriter::UpdatePodGroup(const Action& action, const std::stop_token& stop) {
  EDL_ASSIGN_OR_RETURN(const kube::Object stored,
                       client_.Update(ResourceOf(action), action.object, stop));
  cache_.WrotePodGroup(stored);
  return Ok();
}

Result<ShardService> ClusterWriter::ReadShards(const kube::Object& job,
                                               const std::stop_token& stop) {
  const kube::ObjectKey key{job.ns(), ShardServiceName(job.name())};
  const auto service = client_.Get(kube::kServices, key, stop);
  if (!service.ok() && service.status().code() != Code::kNotFound) return service.status();
  const bool has_service = service.ok() && IsControlledBy(*service, job);
  const auto pod = client_.Get(kube::kPods, key, stop);
  if (pod.status().code() == Code::kNotFound) {
    return ShardService{.pod = std::nullopt, .has_service = has_service};
  }
  if (!pod.ok()) return pod.status();
  ShardService read = ReadShardService(*pod, "");
  // Without a log, the progress is unknown. A node that is lost would not answer.
  if (read.pod->node_loss == NodeLoss::kNone) {
    const auto log = logs_.Log(key,
                               {.container = std::string(kShardContainer),
                                .tail_lines = kShardLogLines,
                                .limit_bytes = kLogBytes},
                               stop);
    if (log.ok()) read = ReadShardService(*pod, *log);
  }
  read.has_service = has_service;
  return read;
}

std::string ClusterWriter::LastLogLines(const std::string& ns, const LogSource& source,
                                        const std::stop_token& stop) {
  auto log = logs_.Log({ns, source.pod},
                       {.container = source.container,
                        .previous = source.previous,
                        .tail_lines = kLogLines,
                        .limit_bytes = kLogBytes},
                       stop);
  if (!log.ok()) return "";
  std::string out;
  for (const std::string_view line : Split(Trim(*log), '\n')) {
    if (!out.empty()) out += "\n";
    out += OneLine(Trim(line), kMostLogText / kLogLines);
  }
  return out;
}

}  // namespace edl::reconciler
