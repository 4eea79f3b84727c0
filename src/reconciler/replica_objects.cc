#include "reconciler/replica_objects.h"

#include <set>
#include <utility>
#include <vector>

#include "reconciler/cluster_config.h"
#include "reconciler/labels.h"
#include "reconciler/shard_service.h"
#include <fmt/format.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

const char* PodRestartPolicy(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
    case RestartPolicy::kExitCode:
      return "Never";
  }
  return "Never";
}

bool HasMasterRole(const TFJob& job, ReplicaType type, int index) {
  if (IsChiefOrMaster(type)) return true;
  return !job.chief() && type == ReplicaType::kWorker && index == 0;
}

void AddVariable(json& pod_spec, const char* name, const std::string& value) {
  for (json& container : pod_spec["containers"]) {
    if (TextIn(container, "name") != kContainerName) continue;
    if (!container.contains("env") || !container["env"].is_array()) {
      container["env"] = json::array();
    }
    // Later entries replace earlier ones of the same name.
    container["env"].push_back({{"name", name}, {"value", value}});
  }
}

void AddGang(const TFJob& job, ReplicaType type, const std::string& scheduler, kube::Object& pod) {
  if (scheduler.empty()) return;
  json& spec = pod.fields()["spec"];
  if (TextIn(spec, "schedulerName").empty()) spec["schedulerName"] = scheduler;
  if (scheduler == "volcano") {
    pod.set_annotation("scheduling.k8s.io/group-name", job.key.name);
    pod.set_annotation("volcano.sh/task-spec", LowerNameOf(type));
  } else {
    pod.set_label("scheduling.x-k8s.io/pod-group", job.key.name);
  }
}

// The memory of a value, about. It may be much more than that of its text: "[],[],[]".
size_t MemoryOf(const json& value) {
  constexpr size_t kBytesPerValue = 96;  // with the node of a map and its key
  size_t bytes = 0;
  std::vector<const json*> left = {&value};
  while (!left.empty()) {
    const json& next = *left.back();
    left.pop_back();
    bytes += kBytesPerValue;
    if (next.is_string()) bytes += next.get_ref<const std::string&>().size();
    if (next.is_structured()) {
      for (const json& each : next) left.push_back(&each);
    }
  }
  return bytes;
}

// A name for a port without one: a service with several ports needs different names.
std::string UniquePortName(int64_t number, const std::string& protocol,
                           const std::set<std::string>& taken) {
  std::string name = fmt::format("port-{}", number);
  if (protocol == "UDP") name += "-udp";
  if (protocol == "SCTP") name += "-sctp";
  while (taken.contains(name)) name += "-x";
  return name;
}

}  // namespace

void AddJobAsOwner(const TFJob& job, kube::Object& object) {
  object.AddOwner(OwnerOf(job));
  // A deletion of the job with propagation Foreground waits for the object.
  object.metadata()["ownerReferences"].back()["blockOwnerDeletion"] = true;
}

kube::OwnerReference OwnerOf(const TFJob& job) {
  return {.api_version = kTFJobs.api_version(),
          .kind = std::string(kTFJobs.kind),
          .name = job.key.name,
          .uid = job.uid,
          .controller = true};
}

kube::Object MakePod(const TFJob& job, ReplicaType type, int index, const PodSettings& settings) {
  const ReplicaSpec& spec = job.replicas.at(type);
  kube::Object pod(kube::kPods, {job.key.ns, ReplicaName(job.key.name, type, index)});
  const json& metadata = FieldAt(spec.pod_template, {"metadata"});
  for (const char* kept : {"labels", "annotations", "finalizers"}) {
    const json& field = FieldAt(metadata, {kept});
    if (!field.is_null()) pod.metadata()[kept] = field;
  }
  for (const auto& [name, value] : ReplicaLabels(job.key.name, type, index)) {
    pod.set_label(name, value);
  }
  if (HasMasterRole(job, type, index)) pod.set_label(kJobRoleLabel, "master");
  AddJobAsOwner(job, pod);
  pod.fields()["spec"] = FieldAt(spec.pod_template, {"spec"});
  json& pod_spec = pod.fields()["spec"];
  pod_spec["restartPolicy"] = PodRestartPolicy(spec.restart);
  const std::string config = ClusterConfig(job, type, index, settings.cluster_domain);
  if (!config.empty()) AddVariable(pod_spec, "TF_CONFIG", config);
  if (job.has_data_shards()) AddShardVariables(job, type, index, pod_spec);
  AddGang(job, type, settings.gang_scheduler, pod);
  return pod;
}

size_t ApproximatePodSize(const TFJob& job, ReplicaType type) {
  constexpr size_t kBytesPerAddress = 64;
  return MemoryOf(job.replicas.at(type).pod_template) +
         kBytesPerAddress * static_cast<size_t>(job.total_replicas());
}

kube::Object MakeService(const TFJob& job, ReplicaType type, int index) {
  kube::Object service(kube::kServices, {job.key.ns, ReplicaName(job.key.name, type, index)});
  const kube::Object::Labels labels = ReplicaLabels(job.key.name, type, index);
  for (const auto& [name, value] : labels) service.set_label(name, value);
  AddJobAsOwner(job, service);
  json ports = json::array();
  std::set<std::pair<int64_t, std::string>> known;
  const json none;
  const json* container = TrainingContainer(FieldAt(job.replicas.at(type).pod_template, {"spec"}));
  const json& given = ListAt(container == nullptr ? none : *container, {"ports"});
  std::set<std::string> names;
  for (const json& port : given) names.insert(TextIn(port, "name"));
  for (const json& port : given) {
    const int64_t number = NumberIn(port, "containerPort");
    if (number < 1 || number > 65535) continue;
    const std::string protocol = TextIn(port, "protocol");
    if (!known.insert({number, protocol.empty() ? "TCP" : protocol}).second) continue;
    std::string name = TextIn(port, "name");
    if (name.empty()) name = UniquePortName(number, protocol, names);
    names.insert(name);
    json entry = {{"name", std::move(name)}, {"port", number}};
    if (!protocol.empty() && protocol != "TCP") entry["protocol"] = protocol;
    ports.push_back(std::move(entry));
  }
  service.fields()["spec"] = {{"clusterIP", "None"}, {"selector", labels}, {"ports", ports}};
  return service;
}

bool HasOtherScheduler(const TFJob& job, const std::string& gang_scheduler) {
  for (const auto& [type, spec] : job.replicas) {
    const std::string name = TextIn(FieldAt(spec.pod_template, {"spec"}), "schedulerName");
    if (!name.empty() && name != gang_scheduler) return true;
  }
  return false;
}

bool HasTemplateRestartPolicy(const ReplicaSpec& spec) {
  return !TextIn(FieldAt(spec.pod_template, {"spec"}), "restartPolicy").empty();
}

}  // namespace edl::reconciler
