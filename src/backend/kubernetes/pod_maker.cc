#include "backend/kubernetes/pod_maker.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "job/names.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* kTokenVolume = "elasticdl-job";
constexpr const char* kStateVolume = "elasticdl-state";
// The user and group of the master's image (elasticdl/docker/Dockerfile.master). A new volume
// belongs to root; Kubernetes gives it to this group where it can.
constexpr int kMasterGroup = 65532;

// The grace period of a pod. A worker has nothing to save, and a preempting pod waits for its
// place. For the other roles, the replacement waits too.
int GraceSeconds(job::Role role) { return role == job::Role::kWorker ? 1 : 5; }

// The original ElasticDL calls ephemeral-storage "disk".
json ResourceListOf(const job::Resources& resources) {
  json out = json::object();
  for (const auto& [name, amount] : resources.amounts) {
    out[name == "disk" ? "ephemeral-storage" : name] = amount;
  }
  return out;
}

json ResourcesOf(const job::RoleResources& resources, int64_t memory_bytes) {
  json out = {{"requests", ResourceListOf(resources.request)},
              {"limits", ResourceListOf(resources.limit)}};
  // A replica that ran out of memory gets more than its flags request.
  if (memory_bytes > resources.limit.memory_bytes && resources.limit.memory_bytes > 0) {
    out["requests"]["memory"] = out["limits"]["memory"] = std::to_string(memory_bytes);
  }
  return out;
}

// Adds claims first, then host paths, each once however often it is mounted.
void AddVolumes(const std::vector<job::Volume>& volumes, json& spec, json& container) {
  std::map<std::string, std::string> names;  // by source
  const auto add = [&](const std::string& key, json source) {
    if (names.contains(key)) return;
    const std::string name = fmt::format("volume-{}", names.size());
    names[key] = name;
    source["name"] = name;
    spec["volumes"].push_back(std::move(source));
  };
  for (const job::Volume& volume : volumes) {
    if (volume.claim_name.empty()) continue;
    add("claim/" + volume.claim_name,
        {{"persistentVolumeClaim", {{"claimName", volume.claim_name}, {"readOnly", false}}}});
  }
  for (const job::Volume& volume : volumes) {
    if (volume.host_path.empty()) continue;
    json source = {{"path", volume.host_path}};
    if (volume.type != job::HostPathType::kAny) source["type"] = NameOf(volume.type);
    add("path/" + volume.host_path, {{"hostPath", std::move(source)}});
  }
  for (const job::Volume& volume : volumes) {
    const std::string& name = volume.claim_name.empty() ? names["path/" + volume.host_path]
                                                        : names["claim/" + volume.claim_name];
    json mount = {{"name", name}, {"mountPath", volume.mount_path}};
    if (!volume.sub_path.empty()) mount["subPath"] = volume.sub_path;
    container["volumeMounts"].push_back(std::move(mount));
  }
}

// Escapes a text so that it arrives unchanged: Kubernetes expands $(NAME) in commands and values,
// and replaces $$ by $.
std::string Verbatim(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '$' ? "$$" : std::string(1, c);
  return out;
}

void AddVariable(json& container, const std::string& name, const std::string& value) {
  container["env"].push_back({{"name", name}, {"value", Verbatim(value)}});
}

// The key in the job's secret for a variable of --envs; empty if a secret cannot have that key.
std::string SecretKeyOf(const std::string& name) {
  const bool fits = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  return fits ? "env." + name : "";
}

// Values of --envs may be secret, and many users can read pods.
void AddSecretVariable(json& container, const std::string& name, const std::string& value,
                       const std::string& secret) {
  const std::string key = SecretKeyOf(name);
  if (key.empty()) return AddVariable(container, name, value);
  container["env"].push_back(
      {{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", key}}}}}});
}

void AddFieldVariable(json& container, const std::string& name, const std::string& path) {
  container["env"].push_back(
      {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
}

void MountSecret(json& spec, json& container, json source) {
  source["name"] = kTokenVolume;
  spec["volumes"].push_back(std::move(source));
  container["volumeMounts"].push_back(
      {{"name", kTokenVolume}, {"mountPath", kJobMount}, {"readOnly", true}});
}

json OwnerJson(const kube::OwnerReference& owner) {
  return {{"apiVersion", owner.api_version},
          {"kind", owner.kind},
          {"name", owner.name},
          {"uid", owner.uid},
          // Without blockOwnerDeletion: some clusters require a permission on finalizers for it,
          // and the garbage collector does not need it.
          {"controller", true}};
}

// A port under the name by which Prometheus finds it: docs/metrics.md.
json MetricsPort(int port) { return {{"name", "http-metrics"}, {"containerPort", port}}; }

}  // namespace

bool HasClaim(const job::JobSpec& job) {
  return std::any_of(job.volumes.begin(), job.volumes.end(),
                     [](const job::Volume& volume) { return !volume.claim_name.empty(); });
}

PodMaker::PodMaker(job::JobSpec job, backend::ClusterOptions options, std::string ns)
    : job_(std::move(job)), options_(std::move(options)), ns_(std::move(ns)) {}

std::string PodMaker::Selector() const {
  return fmt::format("{}={},{}={}", kAppLabel, kApp, kJobLabel, job_.job_name);
}

kube::Selector PodMaker::RunningReplicas() const {
  return {.labels = fmt::format("{},{}!={}", Selector(), kRoleLabel, NameOf(job::Role::kMaster)),
          .fields = "status.phase!=Succeeded,status.phase!=Failed"};
}

std::string PodMaker::AddressOf(job::Role role, int index) const {
  return fmt::format("{}.{}.svc:{}", job_.ReplicaName(role, index), ns_,
                     role == job::Role::kPs ? kPsPort : kReplicaPort);
}

std::string PodMaker::MasterAddress() const {
  return fmt::format("{}.{}.svc:{}", job::MasterName(job_.job_name), ns_, kMasterPort);
}

bool PodMaker::HasService(job::Role role) const {
  return job_.need_tf_config || role == job::Role::kPs;
}

json PodMaker::Metadata(const std::string& name, job::Role role, int index) const {
  return {{"name", name},
          {"namespace", ns_},
          {"labels",
           {{kAppLabel, kApp},
            {kJobLabel, job_.job_name},
            {kRoleLabel, job::NameOf(role)},
            {kIndexLabel, std::to_string(index)}}}};
}

json PodMaker::PodSpec(const std::string& name, job::Role role, int index) const {
  json spec = {{"containers",
                {{{"name", name},
                  {"image", options_.images.at(role)},
                  {"imagePullPolicy", options_.image_pull_policy},
                  // Pod Security level "restricted", except for the user, which the image sets.
                  {"securityContext",
                   {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}},
                  {"env", json::array()}}}},
               {"securityContext", {{"seccompProfile", {{"type", "RuntimeDefault"}}}}},
               {"restartPolicy", NameOf(options_.restart_policy)},
               {"terminationGracePeriodSeconds", GraceSeconds(role)},
               // Service links would be thousands of environment variables, and outdated.
               {"enableServiceLinks", false}};
  const std::string priority = options_.PriorityClassOf(role, index, job_.CountOf(role));
  if (!priority.empty()) spec["priorityClassName"] = priority;
  for (const std::string& secret : options_.pull_secrets) {
    spec["imagePullSecrets"].push_back({{"name", secret}});
  }
  return spec;
}

kube::Object PodMaker::ReplicaPod(const job::ReplicaSpec& spec,
                                  const kube::OwnerReference& master) const {
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", Metadata(spec.name, spec.role, spec.index)},
              {"spec", PodSpec(spec.name, spec.role, spec.index)}};
  pod["metadata"]["labels"][std::string(kIdLabel)] = std::to_string(spec.id);
  pod["metadata"]["ownerReferences"] = json::array({OwnerJson(master)});
  // The program of the user does not need the API server.
  pod["spec"]["automountServiceAccountToken"] = false;
  json& container = pod["spec"]["containers"][0];
  for (const std::string& word : spec.command) container["command"].push_back(Verbatim(word));
  container["resources"] = ResourcesOf(job_.resources.at(spec.role), spec.memory_limit_bytes);
  if (job_.own_ps && spec.role == job::Role::kPs) {
    container["ports"] = json::array({MetricsPort(kPsHttpPort)});
  }
  AddFieldVariable(container, "MY_POD_IP", "status.podIP");
  for (const auto& [name, value] : spec.env) {
    const auto given = job_.envs.find(name);
    if (given != job_.envs.end() && given->second == value) {
      AddSecretVariable(container, name, value, job::MasterName(job_.job_name));
    } else {
      AddVariable(container, name, value);
    }
  }
  for (const backend::SecretVariable& variable : options_.secret_variables) {
    container["env"].push_back(
        {{"name", variable.name},
         {"valueFrom", {{"secretKeyRef", {{"name", variable.secret}, {"key", variable.key}}}}}});
  }
  AddVolumes(spec.volumes, pod["spec"], container);
  MountSecret(pod["spec"], container,
              {{"secret",
                {{"secretName", job::MasterName(job_.job_name)},
                 {"items", {{{"key", kTokenKey}, {"path", kTokenKey}}}}}}});
  options_.cluster_spec.AdaptPod(spec.role, pod);
  return kube::Object(std::move(pod));
}

kube::Object PodMaker::SlotService(const job::ReplicaSpec& spec,
                                   const kube::OwnerReference& master) const {
  const int port = spec.role == job::Role::kPs ? kPsPort : kReplicaPort;
  return kube::Object(Service(job_.ReplicaName(spec.role, spec.index), spec.role, spec.index, port,
                              {{kIdLabel, std::to_string(spec.id)}}, master));
}

json PodMaker::Service(const std::string& name, job::Role role, int index, int port,
                       const json& selector,
                       const std::optional<kube::OwnerReference>& owner) const {
  json service = {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", Metadata(name, role, index)},
      {"spec",
       {{"ports", {{{"port", port}, {"targetPort", port}}}},
        {"selector",
         {{kAppLabel, kApp}, {kJobLabel, job_.job_name}, {kRoleLabel, job::NameOf(role)}}}}}};
  service["spec"]["selector"].update(selector);
  if (owner.has_value()) service["metadata"]["ownerReferences"] = json::array({OwnerJson(*owner)});
  options_.cluster_spec.AdaptService(service);
  return service;
}

kube::Object PodMaker::MasterPod() const {
  const std::string name = job::MasterName(job_.job_name);
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", Metadata(name, job::Role::kMaster, 0)},
              {"spec", PodSpec(name, job::Role::kMaster, 0)}};
  if (!options_.service_account.empty()) {
    pod["spec"]["serviceAccountName"] = options_.service_account;
  }
  // A job that has ended must not run again: --restart_policy applies to replicas.
  pod["spec"]["restartPolicy"] = "Never";
  json& container = pod["spec"]["containers"][0];
  // The kubelet stores the end of the output with the exit code, for `elasticdl status`.
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  container["command"] = {"elasticdl", "supervise"};
  container["args"] = {"master",
                       "-f",
                       fmt::format("{}/{}", kJobMount, kSpecKey),
                       fmt::format("--job_dir={}", kStateMount),
                       fmt::format("--secret_dir={}", kJobMount),
                       fmt::format("--port={}", kMasterPort)};
  container["ports"] =
      json::array({{{"containerPort", kMasterPort}}, MetricsPort(kMasterHttpPort)});
  container["resources"] = ResourcesOf(job_.resources.at(job::Role::kMaster), 0);
  for (const auto& [variable, value] : job_.envs) {
    AddSecretVariable(container, variable, value, name);
  }
  AddFieldVariable(container, "MY_POD_IP", "status.podIP");
  AddFieldVariable(container, "ELASTICDL_POD_NAME", "metadata.name");
  AddFieldVariable(container, "ELASTICDL_POD_UID", "metadata.uid");
  AddFieldVariable(container, "ELASTICDL_POD_NAMESPACE", "metadata.namespace");
  std::vector<job::Volume> volumes = job_.volumes;
  const auto claim = std::find_if(volumes.begin(), volumes.end(), [](const job::Volume& volume) {
    return !volume.claim_name.empty();
  });
  if (claim != volumes.end()) {
    // Mounts the same volume again: a pod with two volumes of one claim never starts.
    volumes.push_back({.claim_name = claim->claim_name,
                       .mount_path = std::string(kStateMount),
                       .sub_path = fmt::format(".elasticdl/{}", job_.job_name)});
    pod["spec"]["securityContext"]["fsGroup"] = kMasterGroup;
    pod["spec"]["securityContext"]["fsGroupChangePolicy"] = "OnRootMismatch";
  } else {
    pod["spec"]["volumes"].push_back({{"name", kStateVolume}, {"emptyDir", json::object()}});
    container["volumeMounts"].push_back({{"name", kStateVolume}, {"mountPath", kStateMount}});
  }
  AddVolumes(volumes, pod["spec"], container);
  MountSecret(pod["spec"], container, {{"secret", {{"secretName", name}}}});
  options_.cluster_spec.AdaptPod(job::Role::kMaster, pod);
  return kube::Object(std::move(pod));
}

kube::Object PodMaker::MasterService(const std::optional<kube::OwnerReference>& master) const {
  return kube::Object(Service(job::MasterName(job_.job_name), job::Role::kMaster, 0, kMasterPort,
                              json::object(), master));
}

kube::Object PodMaker::JobSecret(const std::string& spec_json, const std::string& token) const {
  json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"metadata", Metadata(job::MasterName(job_.job_name), job::Role::kMaster, 0)},
                 {"type", "Opaque"},
                 {"data", {{kSpecKey, EncodeBase64(spec_json)}, {kTokenKey, EncodeBase64(token)}}}};
  for (const auto& [name, value] : job_.envs) {
    if (const std::string key = SecretKeyOf(name); !key.empty()) {
      secret["data"][key] = EncodeBase64(value);
    }
  }
  return kube::Object(std::move(secret));
}

}  // namespace edl::backend::kubernetes
