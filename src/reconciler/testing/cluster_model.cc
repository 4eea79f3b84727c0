#include "reconciler/testing/cluster_model.h"

#include <algorithm>

#include "reconciler/labels.h"
#include "reconciler/write_order.h"
#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "kube/text.h"

namespace edl::reconciler {

using nlohmann::json;

json Role(int replicas, const std::string& restart) {
  return {{"replicas", replicas},
          {"restartPolicy", restart},
          {"template",
           {{"spec",
             {{"containers", json::array({{{"name", "tensorflow"}, {"image", "trainer"}}})}}}}}};
}

json JobObject(json roles, json run_policy) {
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"namespace", "ns"}, {"name", "j"}, {"uid", kJobUid}}},
          {"spec", {{"tfReplicaSpecs", std::move(roles)}, {"runPolicy", std::move(run_policy)}}}};
}

TFJob ParsedJob(const json& object) {
  auto parsed = ParseTFJob(kube::Object(object));
  CHECK(parsed.ok(), "{}: {}", parsed.status().message(), Dump(object));
  return std::move(parsed).value();
}

ReplicaPod PodOf(ReplicaType type, int index, PodOutcome outcome) {
  const std::string name = ReplicaName("j", type, index);
  ReplicaPod pod{.name = name,
                 .uid = "uid-of-" + name,
                 .slot = {type, index},
                 .job = "j",
                 .owner = kJobUid,
                 .outcome = outcome};
  pod.created = kNoon - std::chrono::hours(1);
  if (outcome == PodOutcome::kSucceeded) pod.exit_code = 0;
  if (outcome == PodOutcome::kFailed) {
    pod.exit_code = 1;
    pod.reason = "exit code 1 (Error)";
    pod.log_container = "tensorflow";
  }
  pod.terminal = outcome == PodOutcome::kSucceeded || outcome == PodOutcome::kFailed ||
                 outcome == PodOutcome::kDisrupted;
  if (outcome == PodOutcome::kTerminating) pod.deletion_time = kNoon;
  return pod;
}

ReplicaService ServiceOf(ReplicaType type, int index) {
  const std::string name = ReplicaName("j", type, index);
  return {.name = name,
          .uid = "uid-of-service-" + name,
          .slot = {type, index},
          .job = "j",
          .owner = kJobUid};
}

JobStatus ClusterModel::status() const { return ParseStatus(FieldAt(job_, {"status"})); }

std::string TextOf(const Conditions& conditions) {
  std::string out;
  for (const Condition& each : conditions.all()) {
    if (!out.empty()) out += " ";
    out += each.type + (each.is_true ? "" : "-");
  }
  return out;
}

std::vector<std::string> ClusterModel::pods() const {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods_) names.push_back(name);
  return names;
}

std::vector<std::string> ClusterModel::services() const {
  std::vector<std::string> names;
  for (const auto& [name, service] : services_) names.push_back(name);
  return names;
}

int ClusterModel::created(const std::string& pod) const {
  const auto found = created_.find(pod);
  return found == created_.end() ? 0 : found->second;
}

Observed ClusterModel::Observe() const {
  Observed out{.job = ParsedJob(job_),
               .pods = {},
               .services = {},
               .pod_group = pod_group_,
               .shards = std::nullopt};
  for (const auto& [name, pod] : pods_) {
    if (const auto read = ReadPod(pod)) out.pods.push_back(*read);
  }
  for (const auto& [name, service] : services_) {
    if (const auto read = ReadService(service)) out.services.push_back(*read);
  }
  return out;
}

void ClusterModel::WriteStatus(const JobStatus& status, size_t& writes) {
  const json stored = FieldAt(job_, {"status"});
  const json next = StatusJson(status, stored);
  if (next == stored || writes == 0) return;
  if (counts_wait && DifferOnlyInCounts(ParseStatus(stored), status)) return;
  job_["status"] = next;
  --writes;
}

Plan ClusterModel::Pass(size_t writes) {
  Plan plan = Reconcile(Observe(), settings, now_);
  const bool actions_first = OrderOfWrites(plan, status()) == WriteOrder::kActionsFirst;
  if (!actions_first) WriteStatus(plan.status, writes);
  for (const Action& action : plan.actions) {
    if (writes == 0) break;
    Apply(action);
    --writes;
  }
  if (actions_first) WriteStatus(plan.status, writes);
  return plan;
}

Plan ClusterModel::Settle() {
  Plan last;
  for (int passes = 0; job_exists(); ++passes) {
    CHECK(passes < 100, "the operator never comes to rest: {}", Dump(job_));
    const json before = FieldAt(job_, {"status"});
    Plan plan = Pass();
    if (job_exists() && FieldAt(job_, {"status"}) == before && plan.actions.empty()) break;
    last = std::move(plan);
  }
  return last;
}

void ClusterModel::Store(kube::Object object, std::map<std::string, kube::Object>& in) {
  const std::string name = object.name();
  if (in.contains(name)) return;  // 409
  object.metadata()["uid"] = fmt::format("uid-{}", next_uid_++);
  object.metadata()["creationTimestamp"] = kube::FormatTime(now_);
  in.emplace(name, std::move(object));
}

void ClusterModel::Apply(const Action& action) {
  const auto pod = pods_.find(action.name);
  const bool same_pod = pod != pods_.end() && pod->second.uid() == action.uid;
  const auto service = services_.find(action.name);
  const bool same_service = service != services_.end() && service->second.uid() == action.uid;
  switch (action.kind) {
    case Action::Kind::kCreatePod:
      if (!pods_.contains(action.object.name())) ++created_[action.object.name()];
      Store(action.object, pods_);
      break;
    case Action::Kind::kCreateService:
      Store(action.object, services_);
      break;
    case Action::Kind::kDeletePod:
      if (same_pod && action.force) pods_.erase(pod);
      if (same_pod && !action.force) DeletePod(action.name);
      break;
    case Action::Kind::kDeleteService:
      if (same_service) services_.erase(service);
      break;
    case Action::Kind::kAdoptPod:
    case Action::Kind::kAdoptService: {
      kube::Object& object = action.kind == Action::Kind::kAdoptPod ? pod->second : service->second;
      AddJobAsOwner(ParsedJob(job_), object);
      break;
    }
    case Action::Kind::kReleasePod:
      if (same_pod) pod->second.metadata().erase("ownerReferences");
      break;
    case Action::Kind::kReleaseService:
      if (same_service) service->second.metadata().erase("ownerReferences");
      break;
    case Action::Kind::kCreatePodGroup:
    case Action::Kind::kUpdatePodGroup:
      pod_group_ = action.object;
      break;
    case Action::Kind::kDeletePodGroup:
      pod_group_.reset();
      break;
    case Action::Kind::kCreateSecret:
      break;
    case Action::Kind::kDeleteJob:
      job_ = nullptr;
      pods_.clear();
      services_.clear();
      break;
  }
}

void ClusterModel::SetPhase(const std::string& name, const std::string& phase) {
  kube::Object& object = pod(name);
  object.fields()["spec"]["nodeName"] = "n1";
  json& status = object.fields()["status"];
  status["phase"] = phase;
  if (phase == "Running") {
    status["containerStatuses"] = json::array(
        {{{"name", "tensorflow"}, {"restartCount", 0}, {"state", {{"running", json::object()}}}}});
  }
}

void ClusterModel::RunAll() {
  for (const auto& [name, pod] : pods_) {
    if (kube::PodStateOf(pod).phase == kube::PodPhase::kUnknown) SetPhase(name, "Running");
  }
}

void ClusterModel::Exit(const std::string& name, int code) {
  SetPhase(name, code == 0 ? "Succeeded" : "Failed");
  const json terminated = {{"exitCode", code},
                           {"reason", code == 0 ? "Completed" : "Error"},
                           {"finishedAt", kube::FormatTime(now_)}};
  pod(name).fields()["status"]["containerStatuses"] = json::array(
      {{{"name", "tensorflow"}, {"restartCount", 0}, {"state", {{"terminated", terminated}}}}});
}

void ClusterModel::SetRestarts(const std::string& name, int restarts) {
  SetPhase(name, "Running");
  pod(name).fields()["status"]["containerStatuses"][0]["restartCount"] = restarts;
}

void ClusterModel::FailWithReason(const std::string& name, const std::string& reason) {
  pod(name).fields()["status"] = {{"phase", "Failed"}, {"reason", reason}};
}

void ClusterModel::Disrupt(const std::string& name, const std::string& reason) {
  pod(name).fields()["status"]["conditions"] =
      json::array({{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}}});
  DeletePod(name);
}

void ClusterModel::DeletePod(const std::string& name) {
  if (!graceful) {
    pods_.erase(name);
  } else if (!pod(name).deleting()) {
    pod(name).metadata()["deletionTimestamp"] = kube::FormatTime(now_ + std::chrono::seconds(30));
    pod(name).metadata()["deletionGracePeriodSeconds"] = 30;
  }
}

void ClusterModel::Reap() {
  std::erase_if(pods_, [](const auto& entry) { return entry.second.deleting(); });
}

}  // namespace edl::reconciler
