#include "reconciler/shard_service.h"

#include <algorithm>

#include "reconciler/labels.h"
#include "reconciler/replica_objects.h"
#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"
#include "job/master_exit.h"
#include "job/names.h"
#include "job/progress.h"
#include "job/role.h"
#include "kube/pod.h"
#include "kube/resource.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

constexpr const char* kComponentLabel = "tfjob.elasticdl.org/component";
constexpr const char* kComponent = "data-shards";
constexpr int kPort = 50001;
constexpr const char* kTokenKey = "token";
constexpr const char* kTokenMount = "/elasticdl/token";
constexpr const char* kStateMount = "/elasticdl/state";
// The user and group of our image (elasticdl/docker/Dockerfile.master).
constexpr int kUser = 65532;

job::Role RoleOf(ReplicaType type) {
  switch (type) {
    case ReplicaType::kChief:
    case ReplicaType::kMaster:
      return job::Role::kChief;
    case ReplicaType::kEvaluator:
      return job::Role::kEvaluator;
    case ReplicaType::kPs:
      return job::Role::kPs;
    case ReplicaType::kWorker:
      return job::Role::kWorker;
  }
  return job::Role::kWorker;
}

// A name for logs that our master accepts: those of TFJobs may be longer.
std::string NameForMaster(std::string name) {
  name.resize(std::min(name.size(), job::kLongestJobName));
  while (name.ends_with('-')) name.pop_back();
  return name;
}

// The uid of the job as the id of a submission: a ledger with another id is not used.
std::string SubmissionOf(std::string uid) {
  std::erase(uid, '-');
  return uid;
}

kube::Object::Labels LabelsOf(const TFJob& job) {
  kube::Object::Labels labels = JobLabels(job.key.name);
  labels[kComponentLabel] = kComponent;
  return labels;
}

// Its name is never used again: a job of the same name must not get the token of its predecessor.
std::string SecretNameOf(const TFJob& job) {
  return fmt::format("{}-{}", ShardServiceName(job.key.name), job.uid);
}

kube::Object Make(const kube::Resource& resource, const TFJob& job, const std::string& name) {
  kube::Object object(resource, {job.key.ns, name});
  for (const auto& [name, value] : LabelsOf(job)) object.set_label(name, value);
  AddJobAsOwner(job, object);
  return object;
}

// Replicas must not preempt the service that they need, so it has the class of the most important
// role that has one.
std::string PriorityClassOf(const TFJob& job) {
  for (const ReplicaType type :
       {ReplicaType::kChief, ReplicaType::kMaster, ReplicaType::kPs, ReplicaType::kWorker}) {
    const auto spec = job.replicas.find(type);
    if (spec == job.replicas.end()) continue;
    std::string name = TextIn(FieldAt(spec->second.pod_template, {"spec"}), "priorityClassName");
    if (!name.empty()) return name;
  }
  return "";
}

void AddState(const TFJob& job, json& spec) {
  const auto claim = job.annotations.find(kDataShardsClaim);
  json volume = {{"name", "state"}};
  json mount = {{"name", "state"}, {"mountPath", kStateMount}};
  if (claim == job.annotations.end() || claim->second.empty()) {
    volume["emptyDir"] = json::object();
  } else {
    volume["persistentVolumeClaim"] = {{"claimName", claim->second}};
    mount["subPath"] = fmt::format(".elasticdl/{}", job.key.name);
    spec["securityContext"]["fsGroup"] = kUser;
    spec["securityContext"]["fsGroupChangePolicy"] = "OnRootMismatch";
  }
  spec["volumes"].push_back(std::move(volume));
  spec["containers"][0]["volumeMounts"].push_back(std::move(mount));
}

json ContainerOf(const TFJob& job, const std::string& image) {
  return {{"name", kShardContainer},
          {"image", image},
          {"command", {"elasticdl", "supervise"}},
          // The master launches nothing, but its flags require a command.
          {"args",
           {"master", "--external_replicas=true", "--backend=local", "--compat_api=off",
            "--job_command=none", "--job_name=" + NameForMaster(job.key.name),
            "--submission_id=" + SubmissionOf(job.uid), fmt::format("--job_dir={}", kStateMount),
            fmt::format("--secret_dir={}", kTokenMount), fmt::format("--port={}", kPort)}},
          {"ports", {{{"name", "grpc"}, {"containerPort", kPort}}}},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"resources",
           {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}},
            {"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}}},
          {"securityContext",
           {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}},
          {"volumeMounts", {{{"name", "token"}, {"mountPath", kTokenMount}, {"readOnly", true}}}}};
}

// The exit with which the master ended the job. After any other exit its supervisor restarts it.
const kube::ContainerExit* FinalExit(const kube::PodState& state) {
  const kube::ContainerState* container = state.container(kShardContainer);
  if (container == nullptr) return nullptr;
  for (const auto* exit : {&container->exit, &container->last_exit}) {
    if (*exit && job::HasEndedItsJob((*exit)->exit_code)) return &**exit;
  }
  return nullptr;
}

std::string LastLineOf(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

}  // namespace

std::string ShardServiceName(const std::string& job) { return job + "-shards"; }

kube::Object MakeShardPod(const TFJob& job, const std::string& image) {
  kube::Object pod = Make(kube::kPods, job, ShardServiceName(job.key.name));
  json& spec = pod.fields()["spec"];
  spec = {{"containers", {ContainerOf(job, image)}},
          {"volumes", {{{"name", "token"}, {"secret", {{"secretName", SecretNameOf(job)}}}}}},
          {"restartPolicy", "Always"},
          {"terminationGracePeriodSeconds", 2},
          // It does not call the API server.
          {"automountServiceAccountToken", false},
          {"enableServiceLinks", false},
          // As the Pod Security Standard "restricted" demands.
          {"securityContext",
           {{"runAsNonRoot", true},
            {"runAsUser", kUser},
            {"runAsGroup", kUser},
            {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  AddState(job, spec);
  if (std::string priority = PriorityClassOf(job); !priority.empty()) {
    spec["priorityClassName"] = std::move(priority);
  }
  for (const auto& [type, replica] : job.replicas) {
    const json& secrets = FieldAt(replica.pod_template, {"spec", "imagePullSecrets"});
    if (secrets.is_array() && !spec.contains("imagePullSecrets")) {
      spec["imagePullSecrets"] = secrets;
    }
  }
  return pod;
}

kube::Object MakeShardNetworkService(const TFJob& job) {
  kube::Object service = Make(kube::kServices, job, ShardServiceName(job.key.name));
  service.fields()["spec"] = {
      {"selector", LabelsOf(job)},
      // Clients retry until the pod answers.
      {"publishNotReadyAddresses", true},
      {"ports", {{{"name", "grpc"}, {"port", kPort}, {"targetPort", kPort}}}}};
  return service;
}

kube::Object MakeShardSecret(const TFJob& job, const std::string& token) {
  kube::Object secret = Make(kube::kSecrets, job, SecretNameOf(job));
  secret.fields()["type"] = "Opaque";
  secret.fields()["data"] = {{kTokenKey, EncodeBase64(token)}};
  return secret;
}

void AddShardVariables(const TFJob& job, ReplicaType type, int index, json& pod_spec) {
  const std::string address =
      fmt::format("{}.{}.svc:{}", ShardServiceName(job.key.name), job.key.ns, kPort);
  const job::Role role = RoleOf(type);
  const auto workers = job.replicas.find(ReplicaType::kWorker);
  const std::pair<const char*, std::string> plain[] = {
      {"MASTER_ADDR", address},
      {"DLROVER_MASTER_ADDR", address},
      {"WORKER_ID", std::to_string(job::WorkerIdOf(role, index))},
      {"WORKER_TYPE", std::string(job::NameOf(role))},
      {"WORKER_NUM", std::to_string(workers == job.replicas.end() ? 0 : workers->second.replicas)},
      {"ELASTICDL_ENABLED", "true"},
      {"ELASTICDL_JOB_NAME", job.key.name},
      {"ELASTICDL_REPLICA_ID", std::to_string(index)},
      {"ELASTICDL_REPLICA_INDEX", std::to_string(index)},
  };
  for (json& container : pod_spec["containers"]) {
    if (TextIn(container, "name") != kContainerName) continue;
    if (!container.contains("env") || !container["env"].is_array()) {
      container["env"] = json::array();
    }
    json& env = container["env"];
    for (const auto& [variable, value] : plain) {
      env.push_back({{"name", variable}, {"value", value}});
    }
    env.push_back(
        {{"name", "MY_POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
    env.push_back(
        {{"name", "ELASTICDL_TOKEN"},
         {"valueFrom", {{"secretKeyRef", {{"name", SecretNameOf(job)}, {"key", kTokenKey}}}}}});
  }
}

ShardService ReadShardService(const kube::Object& pod, const std::string& log) {
  ShardService out{.pod = ReadPodAs(pod, Slot(), kShardContainer),
                   .deletion_grace = DeletionGraceOf(pod),
                   .failure = "",
                   .progress = job::LastProgress(log)};
  const kube::PodState state = kube::PodStateOf(pod);
  if (const kube::ContainerExit* exit = FinalExit(state); exit != nullptr && !state.deleting) {
    const std::string last = LastLineOf(exit->message);
    out.failure = fmt::format("exit code {}{}{}", exit->exit_code, last.empty() ? "" : ": ", last);
  }
  return out;
}

}  // namespace edl::reconciler
