#include "backend/kubernetes/kubernetes_jobs.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "backend/kubernetes/pod_groups.h"
#include "backend/kubernetes/preflight.h"
#include "backend/kubernetes/yaml.h"
#include "base/base64.h"
#include "job/job_view.h"
#include "job/names.h"
#include "kube/json_fields.h"
#include "kube/pod.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kGonePatience{90};
constexpr std::chrono::milliseconds kGonePoll{200};

// 128 bits in hexadecimal digits.
std::string NewToken() {
  std::random_device random;
  std::string token;
  for (int part = 0; part < 4; ++part) token += fmt::format("{:08x}", random());
  return token;
}

std::string MastersSelector() {
  return fmt::format("{}={},{}={}", kAppLabel, kApp, kRoleLabel, job::NameOf(job::Role::kMaster));
}

// Why a master's pod does not run its master.
std::string TroubleOf(const kube::Object& pod) {
  const kube::PodState state = kube::PodStateOf(pod);
  if (state.deleting) return "its master's pod is being deleted";
  if (std::string why = state.unschedulable(); !why.empty()) {
    return "its master waits for room: " + why;
  }
  for (const kube::ContainerState& container : state.containers) {
    if (!container.waiting_reason.empty() && container.waiting_reason != "ContainerCreating") {
      return fmt::format("its master waits: {}: {}", container.waiting_reason,
                         container.waiting_message);
    }
    if (container.exit.has_value() && container.exit->reason == "OOMKilled") {
      return "its master ran out of memory; give more with --master_resource_limit";
    }
    if (container.exit.has_value() && container.exit->reason == "StartError") {
      return "its master cannot start: " + container.exit->message;
    }
  }
  return "";
}

ClusterJob JobOf(const kube::Object& map, const kube::Object* pod) {
  ClusterJob job{.name = map.label(std::string(kJobLabel)).value_or(map.name()),
                 .status_json = kube::TextIn(kube::FieldAt(map.fields(), {"data"}),
                                             std::string(kStatusKey).c_str())};
  if (pod != nullptr) {
    job.running = !kube::PodStateOf(*pod).terminal();
    job.trouble = TroubleOf(*pod);
  }
  return job;
}

}  // namespace

KubernetesJobs::KubernetesJobs(std::unique_ptr<kube::Connection> connection,
                               const kube::Timing& timing, std::string name_space)
    : connection_(std::move(connection)),
      timing_(timing),
      name_space_(std::move(name_space)),
      client_(*connection_, timing, {.tries = 4, .patience = std::chrono::milliseconds(10'000)}) {}

std::string KubernetesJobs::Where() const {
  return fmt::format("{} ({}), namespace {}", client_.config().server, client_.config().source,
                     name_space_);
}

PodMaker KubernetesJobs::MakerOf(const Submission& submission) const {
  return {submission.job, submission.options, name_space_};
}

kube::ObjectKey KubernetesJobs::MasterKey(const std::string& job) const {
  return {name_space_, job::MasterName(job)};
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
    out += (out.empty() ? "" : "---\n") + ToYaml(object.fields());
  }
  return out;
}

std::vector<Finding> KubernetesJobs::Check(const Submission& submission, Depth depth) {
  return Preflight(client_, name_space_, submission).Run(depth);
}

Templates KubernetesJobs::MakeTemplates(const Submission& submission) const {
  return kubernetes::MakeTemplates(submission, name_space_);
}

Status KubernetesJobs::LaunchMaster(const PodMaker& maker) {
  EDL_ASSIGN_OR_RETURN(const kube::Object pod, client_.Create(kube::kPods, maker.MasterPod()));
  Status served = client_.Create(kube::kServices, maker.MasterService(pod.AsOwner())).status();
  if (!served.ok()) {
    (void)client_.Delete(kube::kPods, pod.key(), {.uid = pod.uid()});
  }
  return served;
}

Status KubernetesJobs::Submit(const Submission& submission) {
  const std::string& job = submission.job.job_name;
  // The map is what makes the name this job's.
  Status claimed = client_.Create(kube::kConfigMaps, StatusMap(submission)).status();
  if (claimed.code() == Code::kAlreadyExists) {
    return AlreadyExists("there is a job {} in namespace {}", job, name_space_);
  }
  EDL_RETURN_IF_ERROR(claimed);
  const PodMaker maker = MakerOf(submission);
  Status made =
      client_.Create(kube::kSecrets, maker.JobSecret(submission.spec_json, NewToken())).status();
  if (made.ok()) made = LaunchMaster(maker);
  // What was made a moment ago is of no use without the rest. The first failure is what the caller
  // is told; what stays is found by the next attempt.
  if (!made.ok()) (void)Delete(job);
  return made;
}

Status KubernetesJobs::AwaitGone(const kube::ObjectKey& master) {
  const Time deadline = timing_.clock.Now() + kGonePatience;
  while (true) {
    const Status pod = client_.Get(kube::kPods, master).status();
    const Status service = client_.Get(kube::kServices, master).status();
    if (pod.code() == Code::kNotFound && service.code() == Code::kNotFound) return Ok();
    for (const Status& status : {pod, service}) {
      if (!status.ok() && status.code() != Code::kNotFound) return status;
    }
    if (timing_.clock.Now() >= deadline) {
      return DeadlineExceeded("pod {} is still there after {} s; see `kubectl describe pod {}`",
                              master, kGonePatience.count(), master.name);
    }
    (void)timing_.wait(kGonePoll, {});
  }
}

Status KubernetesJobs::Resume(const Submission& submission) {
  const std::string& job = submission.job.job_name;
  EDL_ASSIGN_OR_RETURN(const ClusterJob found, Find(job));
  if (found.running) return FailedPrecondition("job {} runs", job);
  const kube::ObjectKey master = MasterKey(job);
  EDL_RETURN_IF_ERROR(client_.Delete(kube::kPods, master));
  EDL_RETURN_IF_ERROR(client_.Delete(kube::kServices, master));
  EDL_RETURN_IF_ERROR(AwaitGone(master));
  const json spec = {{"data", {{kSpecKey, EncodeBase64(submission.spec_json)}}}};
  EDL_RETURN_IF_ERROR(client_.Patch(kube::kSecrets, master, spec).status());
  const json status = {{"data", {{kStatusKey, submission.status_json}}}};
  EDL_RETURN_IF_ERROR(client_.Patch(kube::kConfigMaps, master, status).status());
  return LaunchMaster(MakerOf(submission));
}

Result<std::string> KubernetesJobs::SpecOf(const std::string& job) {
  EDL_ASSIGN_OR_RETURN(const kube::Object secret, client_.Get(kube::kSecrets, MasterKey(job)));
  return DecodeBase64(
      kube::TextIn(kube::FieldAt(secret.fields(), {"data"}), std::string(kSpecKey).c_str()));
}

Result<ClusterJob> KubernetesJobs::Find(const std::string& job) {
  const Result<kube::Object> map = client_.Get(kube::kConfigMaps, MasterKey(job));
  if (map.status().code() == Code::kNotFound) {
    return NotFound("there is no job {} in namespace {} of {}", job, name_space_,
                    client_.config().server);
  }
  if (!map.ok()) return map.status();
  const Result<kube::Object> pod = client_.Get(kube::kPods, MasterKey(job));
  if (!pod.ok() && pod.status().code() != Code::kNotFound) return pod.status();
  return JobOf(*map, pod.ok() ? &*pod : nullptr);
}

Result<std::vector<ClusterJob>> KubernetesJobs::List() {
  const kube::Selector masters{.labels = MastersSelector(), .fields = {}};
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList maps,
                       client_.List(kube::kConfigMaps, name_space_, masters));
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList pods,
                       client_.List(kube::kPods, name_space_, masters));
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
  EDL_ASSIGN_OR_RETURN(const kube::Object pod, client_.Get(kube::kPods, MasterKey(job)));
  if (kube::PodStateOf(pod).phase == kube::PodPhase::kPending) return StopUnborn(job, pod, reason);
  return Annotate(job, kStopAnnotation, reason);
}

Status KubernetesJobs::StopUnborn(const std::string& job, const kube::Object& pod,
                                  const std::string& reason) {
  EDL_RETURN_IF_ERROR(client_.Delete(kube::kPods, pod.key(), {.uid = pod.uid()}));
  EDL_ASSIGN_OR_RETURN(const kube::Object map, client_.Get(kube::kConfigMaps, MasterKey(job)));
  EDL_ASSIGN_OR_RETURN(job::JobView view, job::JobView::FromJson(JobOf(map, nullptr).status_json));
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
  for (const kube::Resource& resource :
       {kube::kPods, kube::kServices, kube::kLeases, kube::kSecrets}) {
    EDL_RETURN_IF_ERROR(client_.Delete(resource, master));
  }
  // Last: while it is there the name is taken, and deleting can be tried again.
  return client_.Delete(kube::kConfigMaps, master);
}

Result<std::vector<std::string>> KubernetesJobs::Pods(const std::string& job) {
  EDL_ASSIGN_OR_RETURN(
      const kube::ObjectList pods,
      client_.List(
          kube::kPods, name_space_,
          {.labels = fmt::format("{}={},{}={}", kAppLabel, kApp, kJobLabel, job), .fields = {}}));
  std::vector<std::string> names;
  for (const kube::Object& pod : pods.items) names.push_back(pod.name());
  const std::string master = job::MasterName(job);
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name == master; });
  return names;
}

Status KubernetesJobs::ReadLog(const std::string& pod, bool follow, const OnText& on_text) {
  const kube::ObjectKey key{name_space_, pod};
  const kube::LogOptions options{.container = pod};
  if (!follow) {
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
  EDL_ASSIGN_OR_RETURN(const kube::ObjectList events, client_.List(kube::kEvents, name_space_));
  const std::string master = job::MasterName(job);
  const std::string replicas = job + "-edljob-";
  std::vector<ClusterEvent> out;
  for (const kube::Object& event : events.items) {
    const json& fields = event.fields();
    const json& about = kube::FieldAt(fields, {"involvedObject"});
    const std::string name = kube::TextIn(about, "name");
    if (name != master && !name.starts_with(replicas)) continue;
    std::string when = kube::TextIn(fields, "lastTimestamp");
    if (when.empty()) when = kube::TextIn(fields, "eventTime");
    out.push_back({.when = std::move(when),
                   .type = kube::TextIn(fields, "type"),
                   .object = kube::TextIn(about, "kind") + "/" + name,
                   .reason = kube::TextIn(fields, "reason"),
                   .message = kube::TextIn(fields, "message"),
                   .count = std::max<int64_t>(kube::NumberIn(fields, "count"), 1)});
  }
  std::stable_sort(out.begin(), out.end(), [](const ClusterEvent& a, const ClusterEvent& b) {
    return a.when.substr(0, 19) < b.when.substr(0, 19);
  });
  return out;
}

}  // namespace edl::backend::kubernetes
