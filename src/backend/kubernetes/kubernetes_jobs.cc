#include "backend/kubernetes/kubernetes_jobs.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "backend/kubernetes/master_pod.h"
#include "backend/kubernetes/pod_groups.h"
#include "backend/kubernetes/preflight.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/log.h"
#include "base/secret.h"
#include "job/job_view.h"
#include "job/names.h"
#include "kube/pod.h"
#include "kube/resource.h"
#include "kube/yaml.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kDeletionTimeout{90};
constexpr std::chrono::milliseconds kDeletionPoll{200};

std::string MastersSelector() {
  return fmt::format("{}={},{}={}", kAppLabel, kApp, kRoleLabel, job::NameOf(job::Role::kMaster));
}

ClusterJob JobOf(const kube::Object& map, const kube::Object* pod, const std::string& name = "") {
  ClusterJob job{
      .name = name.empty() ? map.label(std::string(kJobLabel)).value_or(map.name()) : name,
      .status_json = TextIn(FieldAt(map.fields(), {"data"}), std::string(kStatusKey).c_str())};
  if (pod != nullptr) {
    const MasterLife master = MasterLifeOf(*pod);
    job.running = master.running;
    job.trouble = master.trouble;
  }
  if (!job.running && job.trouble.empty()) {
    const kube::Object::Labels notes = map.annotations();
    const auto note = notes.find(std::string(kInterruptedAnnotation));
    if (note != notes.end()) job.trouble = note->second;
  }
  return job;
}

}  // namespace

KubernetesJobs::KubernetesJobs(std::unique_ptr<kube::Connection> connection,
                               const kube::Timing& timing, std::string ns)
    : connection_(std::move(connection)),
      timing_(timing),
      ns_(std::move(ns)),
      client_(*connection_, timing,
              {.tries = 4, .retry_timeout = std::chrono::milliseconds(10'000)}) {}

std::string KubernetesJobs::Where() const {
  return fmt::format("{} ({}), namespace {}", client_.config().server, client_.config().source,
                     ns_);
}

PodMaker KubernetesJobs::MakerOf(const Submission& submission) const {
  return {submission.job, submission.options, ns_};
}

Submission KubernetesJobs::WithAccount(Submission submission) {
  std::string& account = submission.options.service_account;
  if (!account.empty()) return submission;
  const kube::ObjectKey ours{ns_, std::string(backend::kMasterAccount)};
  // If the account does not exist or cannot be read, the roles of the default account must suffice.
  if (client_.Get(kube::kServiceAccounts, ours).ok()) account = ours.name;
  return submission;
}

kube::ObjectKey KubernetesJobs::MasterKey(const std::string& job) const {
  return {ns_, job::MasterName(job)};
}

kube::Object KubernetesJobs::StatusMap(const Submission& submission) const {
  kube::Object map(kube::kConfigMaps, MasterKey(submission.job.job_name));
  map.set_label(std::string(kAppLabel), std::string(kApp));
  map.set_label(std::string(kJobLabel), submission.job.job_name);
  map.set_label(std::string(kRoleLabel), std::string(job::NameOf(job::Role::kMaster)));
  map.fields()["data"][std::string(kStatusKey)] = submission.status_json;
  return map;
}

std::string KubernetesJobs::Manifests(const Submission& submission) const {
  const PodMaker maker = MakerOf(submission);
  std::string out;
  for (const kube::Object& object :
       {maker.JobSecret(submission.spec_json, NewToken()), StatusMap(submission),
        maker.MasterService(std::nullopt), maker.MasterPod()}) {
    out += (out.empty() ? "" : "---\n") + kube::ToYaml(object.fields());
  }
  return out;
}

std::vector<Finding> KubernetesJobs::Check(const Submission& submission, Depth depth) {
  const Submission complete = WithAccount(submission);
  return Preflight(client_, ns_, complete).Run(depth);
}

Templates KubernetesJobs::MakeTemplates(const Submission& submission) const {
  return kubernetes::MakeTemplates(submission, ns_);
}

Status KubernetesJobs::LaunchMaster(const PodMaker& maker) {
  EDL_ASSIGN_OR_RETURN(const kube::Object pod, client_.Create(kube::kPods, maker.MasterPod()));
  const kube::Object service = maker.MasterService(pod.AsOwner());
  Status served = client_.Create(kube::kServices, service).status();
  if (served.code() == Code::kAlreadyExists) {
    // The service belongs to an earlier master, and the garbage collector has not deleted it yet.
    EDL_RETURN_IF_ERROR(client_.Delete(kube::kServices, service.key()));
    served = client_.Create(kube::kServices, service).status();
  }
  if (!served.ok()) Undo({{kube::kPods, pod}});
  return served;
}

void KubernetesJobs::Undo(std::vector<Made> made) {
  std::reverse(made.begin(), made.end());
  for (const Made& one : made) {
    const Status gone = client_.Delete(one.resource, one.object.key(), {.uid = one.object.uid()});
    if (!gone.ok()) LOG_WARNING("{}", gone.message());
  }
}

Status KubernetesJobs::Submit(const Submission& given) {
  const Submission submission = WithAccount(given);
  const std::string& job = submission.job.job_name;
  const PodMaker maker = MakerOf(submission);
  std::vector<Made> made;
  const auto create = [&](const kube::Resource& resource, const kube::Object& object) {
    Result<kube::Object> created = client_.Create(resource, object);
    if (created.ok()) made.push_back({resource, *created});
    return created.status();
  };
  // The ConfigMap reserves the name. An object that already exists belongs to another job, running
  // or not, and is left alone.
  Status submitted = create(kube::kConfigMaps, StatusMap(submission));
  if (submitted.ok()) {
    submitted = create(kube::kSecrets, maker.JobSecret(submission.spec_json, NewToken()));
  }
  if (submitted.ok()) submitted = LaunchMaster(maker);
  if (submitted.ok()) return Ok();
  Undo(std::move(made));
  if (submitted.code() == Code::kAlreadyExists) {
    return AlreadyExists(
        "job {0} already exists in namespace {1}; delete it with `elasticdl delete {0}`", job, ns_);
  }
  return submitted;
}

Status KubernetesJobs::AwaitDeletion(const kube::ObjectKey& master) {
  const Time deadline = timing_.clock.Now() + kDeletionTimeout;
  while (true) {
    const Status pod = client_.Get(kube::kPods, master).status();
    const Status service = client_.Get(kube::kServices, master).status();
    if (pod.code() == Code::kNotFound && service.code() == Code::kNotFound) return Ok();
    for (const Status& status : {pod, service}) {
      if (!status.ok() && status.code() != Code::kNotFound) return status;
    }
    if (timing_.clock.Now() >= deadline) {
      return DeadlineExceeded("pod {} still exists after {} s; see `kubectl describe pod {}`",
                              master, kDeletionTimeout.count(), master.name);
    }
    (void)timing_.wait(kDeletionPoll, {});
  }
}

Status KubernetesJobs::Resume(const Submission& given) {
  const Submission submission = WithAccount(given);
  const std::string& job = submission.job.job_name;
  EDL_ASSIGN_OR_RETURN(const ClusterJob found, Find(job));
  if (found.running)
    return FailedPrecondition("job {0} is running; see `elasticdl status {0}`", job);
  const kube::ObjectKey master = MasterKey(job);
  // Deletes only this pod: a concurrent --resume may have created its own by now.
  const Result<kube::Object> old = client_.Get(kube::kPods, master);
  if (old.ok()) {
    EDL_RETURN_IF_ERROR(client_.Delete(kube::kPods, master, {.uid = old->uid()}));
  } else if (old.status().code() != Code::kNotFound) {
    return old.status();
  }
  EDL_RETURN_IF_ERROR(client_.Delete(kube::kServices, master));
  EDL_RETURN_IF_ERROR(DeletePodsOf(job, Which::kRunning));
  EDL_RETURN_IF_ERROR(AwaitDeletion(master));
  // The token does not change.
  kube::Object secret = MakerOf(submission).JobSecret(submission.spec_json, "");
  secret.fields()["data"].erase(std::string(kTokenKey));
  const json spec = {{"data", secret.fields()["data"]}};
  EDL_RETURN_IF_ERROR(client_.Patch(kube::kSecrets, master, spec).status());
  const json status = {{"metadata", {{"annotations", {{kInterruptedAnnotation, nullptr}}}}},
                       {"data", {{kStatusKey, submission.status_json}}}};
  EDL_RETURN_IF_ERROR(client_.Patch(kube::kConfigMaps, master, status).status());
  return LaunchMaster(MakerOf(submission));
}

Result<std::string> KubernetesJobs::SpecOf(const std::string& job) {
  EDL_ASSIGN_OR_RETURN(const kube::Object secret, client_.Get(kube::kSecrets, MasterKey(job)));
  return DecodeBase64(TextIn(FieldAt(secret.fields(), {"data"}), std::string(kSpecKey).c_str()));
}

Result<ClusterJob> KubernetesJobs::Find(const std::string& job) {
  const Result<kube::Object> map = client_.Get(kube::kConfigMaps, MasterKey(job));
  if (map.status().code() == Code::kNotFound) {
    // The ConfigMap was deleted, but the job may still run.
    const Result<kube::Object> left = client_.Get(kube::kPods, MasterKey(job));
    if (left.ok()) return JobOf(kube::Object(kube::kConfigMaps, MasterKey(job)), &*left, job);
    if (left.status().code() != Code::kNotFound) return left.status();
    return NotFound("there is no job {} in namespace {} of {}", job, ns_, client_.config().server);
  }
  if (!map.ok()) return map.status();
  const Result<kube::Object> pod = client_.Get(kube::kPods, MasterKey(job));
  if (!pod.ok() && pod.status().code() != Code::kNotFound) return pod.status();
  return JobOf(*map, pod.ok() ? &*pod : nullptr);
}

Result<std::vector<ClusterJob>> KubernetesJobs::List() {
  const kube::Selector masters{.labels = MastersSelector(), .fields = {}};
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList maps, client_.List(kube::kConfigMaps, ns_, masters));
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList pods, client_.List(kube::kPods, ns_, masters));
  std::map<std::string, const kube::Object*> by_name;
  for (const kube::Object& pod : pods.items) by_name[pod.name()] = &pod;
  std::vector<ClusterJob> jobs;
  for (const kube::Object& map : maps.items) {
    const auto pod = by_name.find(map.name());
    jobs.push_back(JobOf(map, pod == by_name.end() ? nullptr : pod->second));
  }
  return jobs;
}

Status KubernetesJobs::Annotate(const std::string& job, std::string_view name,
                                const std::string& value) {
  const json patch = {{"metadata", {{"annotations", {{name, value}}}}}};
  return client_.Patch(kube::kPods, MasterKey(job), patch).status();
}

Status KubernetesJobs::Stop(const std::string& job, const std::string& reason) {
  const Result<kube::Object> pod = client_.Get(kube::kPods, MasterKey(job));
  if (!pod.ok() && pod.status().code() != Code::kNotFound) return pod.status();
  // Without a master, nothing else ends the pods that it launched.
  if (!pod.ok() || !MasterLifeOf(*pod).running) return DeletePodsOf(job, Which::kRunning);
  if (kube::PodStateOf(*pod).phase == kube::PodPhase::kPending) {
    return StopPendingMaster(job, *pod, reason);
  }
  return Annotate(job, kStopAnnotation, reason);
}

Status KubernetesJobs::DeletePodsOf(const std::string& job, Which which) {
  const kube::Selector selector{
      .labels = fmt::format("{}={},{}={},{}!={}", kAppLabel, kApp, kJobLabel, job, kRoleLabel,
                            job::NameOf(job::Role::kMaster)),
      .fields = which == Which::kRunning ? "status.phase!=Succeeded,status.phase!=Failed" : ""};
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList pods, client_.List(kube::kPods, ns_, selector));
  if (pods.items.empty()) return Ok();
  Status deleted = client_.DeleteMany(kube::kPods, ns_, selector);
  if (deleted.code() != Code::kPermissionDenied) return deleted;
  for (const kube::Object& pod : pods.items) {
    EDL_RETURN_IF_ERROR(client_.Delete(kube::kPods, pod.key(), {.uid = pod.uid()}));
  }
  return Ok();
}

Result<int> KubernetesJobs::CountRunningPods(const std::string& job) {
  EDL_ASSIGN_OR_RETURN(
      const kube::ObjectList pods,
      client_.List(kube::kPods, ns_,
                   {.labels = fmt::format("{}={},{}={},{}!={}", kAppLabel, kApp, kJobLabel, job,
                                          kRoleLabel, job::NameOf(job::Role::kMaster)),
                    .fields = "status.phase!=Succeeded,status.phase!=Failed"}));
  return static_cast<int>(pods.items.size());
}

Status KubernetesJobs::StopPendingMaster(const std::string& job, const kube::Object& pod,
                                         const std::string& reason) {
  EDL_RETURN_IF_ERROR(client_.Delete(kube::kPods, pod.key(), {.uid = pod.uid()}));
  EDL_ASSIGN_OR_RETURN(const kube::Object map, client_.Get(kube::kConfigMaps, MasterKey(job)));
  // An unreadable status is discarded.
  const Result<job::JobView> shown = job::JobView::FromJson(JobOf(map, nullptr).status_json);
  job::JobView view = shown.ok() ? *shown : job::JobView{.name = job};
  view.state = job::JobState::kStopped;
  view.reason = reason;
  const json patch = {{"data", {{kStatusKey, view.ToJson()}}}};
  return client_.Patch(kube::kConfigMaps, MasterKey(job), patch).status();
}

Status KubernetesJobs::Scale(const std::string& job, int num_workers) {
  return Annotate(job, kNumWorkersAnnotation, std::to_string(num_workers));
}

Status KubernetesJobs::Delete(const std::string& job) {
  const kube::ObjectKey master = MasterKey(job);
  // The garbage collector would also delete them, some time after their owner.
  EDL_RETURN_IF_ERROR(DeletePodsOf(job, Which::kAll));
  for (const kube::Resource& resource :
       {kube::kPods, kube::kServices, kube::kLeases, kube::kSecrets}) {
    EDL_RETURN_IF_ERROR(client_.Delete(resource, master));
  }
  // Last: while the ConfigMap exists, the name is reserved and the deletion can be repeated.
  return client_.Delete(kube::kConfigMaps, master);
}

Result<std::vector<std::string>> KubernetesJobs::Pods(const std::string& job) {
  EDL_ASSIGN_OR_RETURN(
      const kube::ObjectList pods,
      client_.List(
          kube::kPods, ns_,
          {.labels = fmt::format("{}={},{}={}", kAppLabel, kApp, kJobLabel, job), .fields = {}}));
  std::vector<std::string> names;
  for (const kube::Object& pod : pods.items) names.push_back(pod.name());
  const std::string master = job::MasterName(job);
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name == master; });
  return names;
}

Status KubernetesJobs::ReadLog(const std::string& pod, LogMode mode, const OnText& on_text) {
  const kube::ObjectKey key{ns_, pod};
  const kube::LogOptions options{.container = pod};
  if (mode == LogMode::kUntilNow) {
    EDL_ASSIGN_OR_RETURN(const std::string text, client_.Log(key, options));
    on_text(text);
    return Ok();
  }
  EDL_ASSIGN_OR_RETURN(const auto stream, client_.FollowLog(key, options));
  while (true) {
    EDL_ASSIGN_OR_RETURN(const std::string text, stream->Read());
    if (text.empty() || !on_text(text)) return Ok();
  }
}

Result<std::vector<ClusterEvent>> KubernetesJobs::Events(const std::string& job) {
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList events, client_.List(kube::kEvents, ns_));
  const std::string master = job::MasterName(job);
  std::vector<ClusterEvent> out;
  for (const kube::Object& event : events.items) {
    const json& fields = event.fields();
    const json& about = FieldAt(fields, {"involvedObject"});
    const std::string name = TextIn(about, "name");
    if (name != master && !job::ReplicaLabel(job, name)) continue;
    std::string when = TextIn(fields, "lastTimestamp");
    if (when.empty()) when = TextIn(fields, "eventTime");
    out.push_back({.when = std::move(when),
                   .type = TextIn(fields, "type"),
                   .object = TextIn(about, "kind") + "/" + name,
                   .reason = TextIn(fields, "reason"),
                   .message = TextIn(fields, "message"),
                   .count = std::max<int64_t>(NumberIn(fields, "count"), 1)});
  }
  std::stable_sort(out.begin(), out.end(), [](const ClusterEvent& a, const ClusterEvent& b) {
    return a.when.substr(0, 19) < b.when.substr(0, 19);
  });
  return out;
}

}  // namespace edl::backend::kubernetes
