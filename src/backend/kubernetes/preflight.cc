#include "backend/kubernetes/preflight.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/cluster_options.h"
#include "backend/kubernetes/cluster_capacity.h"
#include "backend/kubernetes/pod_maker.h"
#include "backend/kubernetes/quota.h"
#include "backend/kubernetes/resource_list.h"
#include "base/json.h"
#include "base/retry.h"
#include "image/image_name.h"
#include "job/names.h"
#include "job/role.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;
using CheckResult = Finding::CheckResult;

// Permissions without which a job cannot be submitted.
constexpr std::array<Act, 4> kSubmitting = {{{"create", kube::kConfigMaps},
                                             {"create", kube::kSecrets},
                                             {"create", kube::kPods},
                                             {"create", kube::kServices}}};
// Permissions for the other verbs of the command line.
constexpr std::array<Act, 14> kControlling = {{{"get", kube::kConfigMaps},
                                               {"list", kube::kConfigMaps},
                                               {"patch", kube::kConfigMaps},
                                               {"delete", kube::kConfigMaps},
                                               {"get", kube::kSecrets},
                                               {"patch", kube::kSecrets},
                                               {"delete", kube::kSecrets},
                                               {"get", kube::kPods},
                                               {"list", kube::kPods},
                                               {"patch", kube::kPods},
                                               {"delete", kube::kPods},
                                               {"get", kube::kPods, "log"},
                                               {"delete", kube::kServices},
                                               {"list", kube::kEvents}}};
constexpr std::array<Act, 16> kMaster = {{{"create", kube::kPods},
                                          {"get", kube::kPods},
                                          {"list", kube::kPods},
                                          {"watch", kube::kPods},
                                          {"delete", kube::kPods},
                                          {"deletecollection", kube::kPods},
                                          {"get", kube::kPods, "log"},
                                          {"create", kube::kServices},
                                          {"list", kube::kServices},
                                          {"patch", kube::kServices},
                                          {"patch", kube::kConfigMaps},
                                          {"create", kube::kEvents},
                                          {"patch", kube::kEvents},
                                          {"get", kube::kLeases},
                                          {"create", kube::kLeases},
                                          {"update", kube::kLeases}}};

const json& SpecOf(const PodGroup& group) { return FieldAt(group.pod.fields(), {"spec"}); }

// The image name as nodes report it. An invalid name is returned unchanged.
std::string FullImageName(const std::string& name) {
  const Result<image::ImageName> parsed = image::ParseImageName(name);
  return parsed.ok() ? parsed->Full() : name;
}

std::string CountOf(const PodGroup& group, int count) {
  const bool plural = count != 1 && group.role != job::Role::kPs;
  return fmt::format("{} {}{}", count, job::NameOf(group.role), plural ? "s" : "");
}

ResourceList RequestsOfReplica(const PodGroup& group) {
  ResourceList requests = RequestsOf(group.pod.fields());
  requests.erase("pods");
  return requests;
}

// The strictest Pod Security level that admits such a pod.
std::string_view PodSecurityLevelOf(const json& pod) {
  for (const json& volume : ListAt(pod, {"spec", "volumes"})) {
    if (volume.contains("hostPath")) return "privileged";
  }
  return "baseline";
}

}  // namespace

std::span<const Act> ActsOfMaster() { return kMaster; }

Preflight::Preflight(kube::Client& client, const std::string& ns, const Submission& submission)
    : client_(client),
      ns_(ns),
      job_secret_(job::MasterName(submission.job.job_name)),
      has_claims_(HasClaim(submission.job)),
      groups_(GroupPods(submission, ns)),
      services_({PodMaker(submission.job, submission.options, ns).MasterService(std::nullopt)}),
      nodes_(Unavailable("the nodes were not read")) {}

std::vector<Finding> Preflight::Run(Depth depth) {
  if (!CheckServer() || !CheckNamespace()) return std::move(findings_);
  CheckCaller(depth);
  CheckAccount(depth);
  CheckClasses();
  CheckClaims(depth);
  if (depth == Depth::kBlockers) return std::move(findings_);
  CheckSecrets();
  nodes_ = client_.List(kube::kNodes, "");
  CheckImages();
  CheckQuotas();
  CheckCapacity();
  CheckAdmission();
  return std::move(findings_);
}

void Preflight::AddOk(std::string what, std::string detail) {
  findings_.push_back({.what = std::move(what), .detail = std::move(detail)});
}

Finding& Preflight::AddMissing(std::string what, std::string detail, std::string fix) {
  return findings_.emplace_back(Finding{.result = CheckResult::kMissing,
                                        .what = std::move(what),
                                        .detail = std::move(detail),
                                        .fix = std::move(fix)});
}

void Preflight::AddUnknown(std::string what, std::string detail, std::string fix) {
  findings_.push_back({.result = CheckResult::kCannotTell,
                       .what = std::move(what),
                       .detail = std::move(detail),
                       .fix = std::move(fix)});
}

void Preflight::AddUnread(const std::string& what, const Status& why, const std::string& fix,
                          Severity severity) {
  if (why.code() == Code::kNotFound) {
    AddMissing(what, "does not exist", fix).blocks = severity == Severity::kBlocker;
  } else {
    AddUnknown(what, why.message());
  }
}

bool Preflight::CheckServer() {
  const std::string what = "cluster " + client_.config().server;
  const Result<std::string> version = client_.ServerVersion();
  if (version.ok() || version.status().code() == Code::kPermissionDenied) {
    AddOk(what, version.ok() && !version->empty() ? "reachable, version " + *version : "reachable");
    return true;
  }
  const bool refused = version.status().code() == Code::kUnauthenticated;
  AddMissing(what, version.status().message(),
             refused ? "log in again, or set KUBECONFIG to another kubeconfig"
                     : "run `kubectl cluster-info`, or set KUBECONFIG to another kubeconfig")
      .blocks = true;
  return false;
}

bool Preflight::CheckNamespace() {
  const std::string what = "namespace " + ns_;
  const Result<kube::Object> found = client_.Get(kube::kNamespaces, {"", ns_});
  if (found.ok() && found->deleting()) {
    AddMissing(what, "is being deleted", "choose another one with --namespace").blocks = true;
    return false;
  }
  if (found.ok()) {
    AddOk(what, "exists");
    return true;
  }
  AddUnread(what, found.status(),
            fmt::format("kubectl create namespace {}, or choose another one with --namespace", ns_),
            Severity::kBlocker);
  return found.status().code() != Code::kNotFound;
}

Result<std::vector<std::string>> Preflight::Denied(std::span<const Act> acts,
                                                   const kube::ObjectKey* account) {
  std::vector<std::string> denied;
  for (const Act& act : acts) {
    const kube::Access access{.verb = std::string(act.verb),
                              .resource = act.resource,
                              .subresource = std::string(act.subresource),
                              .ns = ns_};
    EDL_ASSIGN_OR_RETURN(
        const kube::AccessAnswer answer,
        account == nullptr ? client_.CanI(access) : client_.CanAccount(*account, access));
    if (answer.allowed) continue;
    denied.push_back(fmt::format("{} {}{}{}", act.verb, act.resource.plural,
                                 act.subresource.empty() ? "" : "/", act.subresource));
  }
  return denied;
}

void Preflight::CheckCaller(Depth depth) {
  const auto check = [&](const std::string& what, std::span<const Act> acts, Severity severity) {
    const Result<std::vector<std::string>> denied = Denied(acts, nullptr);
    if (!denied.ok()) return AddUnknown(what, denied.status().message());
    if (denied->empty()) return AddOk(what, "granted");
    AddMissing(
        what, fmt::format("you may not {}", fmt::join(*denied, ", ")),
        fmt::format("request a role from an administrator of the cluster, for example: kubectl "
                    "-n {0} create rolebinding elasticdl-user --clusterrole=edit --user=YOU; to "
                    "submit from a pod: kubectl -n {0} apply -f "
                    "elasticdl/manifests/examples/elasticdl-rbac.yaml",
                    ns_))
        .blocks = severity == Severity::kBlocker;
  };
  check("permission to submit jobs", kSubmitting, Severity::kBlocker);
  if (depth == Depth::kAll) {
    check("permission to inspect and control jobs", kControlling, Severity::kWarning);
  }
}

void Preflight::CheckAccount(Depth depth) {
  std::string name = TextIn(SpecOf(groups_.front()), "serviceAccountName");
  if (name.empty()) name = "default";
  const kube::ObjectKey account{ns_, name};
  const Status found = client_.Get(kube::kServiceAccounts, account).status();
  if (found.ok()) {
    AddOk("service account " + name, "exists");
  } else {
    AddUnread("service account " + name, found,
              fmt::format("kubectl -n {} create serviceaccount {}", ns_, name), Severity::kBlocker);
  }
  if (found.code() == Code::kNotFound) return;
  // The first permission is the one without which a master is useless.
  std::span<const Act> acts = kMaster;
  if (depth == Depth::kBlockers) {
    acts = acts.first(1);
  } else if (!has_claims_) {
    acts = acts.first(acts.size() - 3);  // leases are needed only for a ledger on a claim
  }
  const std::string what = "the master's permissions";
  const Result<std::vector<std::string>> denied = Denied(acts, &account);
  if (!denied.ok()) {
    AddUnknown(what,
               denied.status().code() == Code::kPermissionDenied
                   ? "unknown: you may not create localsubjectaccessreviews"
                   : denied.status().message(),
               "let an administrator run `elasticdl check`");
  } else if (denied->empty()) {
    AddOk(what, fmt::format("granted to service account {}", name));
  } else {
    std::string fix =
        fmt::format("kubectl -n {} apply -f elasticdl/manifests/elasticdl-rbac.yaml", ns_);
    // The manifest creates this account and binds the role to it. Other accounts need their own
    // binding.
    if (name != "default" && name != backend::kMasterAccount) {
      fix += fmt::format(
          " && kubectl -n {0} create rolebinding elasticdl-master-{1} --role=elasticdl-master "
          "--serviceaccount={0}:{1}",
          ns_, name);
    }
    AddMissing(what, fmt::format("service account {} may not {}", name, fmt::join(*denied, ", ")),
               fix)
        .blocks = denied->front() == "create pods";
  }
}

void Preflight::CheckClasses() {
  std::set<std::string> names;
  for (const PodGroup& group : groups_) {
    names.insert(TextIn(SpecOf(group), "priorityClassName"));
  }
  names.erase("");
  for (const std::string& name : names) {
    const Result<kube::Object> found = client_.Get(kube::kPriorityClasses, {"", name});
    if (found.ok()) {
      priorities_[name] = NumberIn(found->fields(), "value");
      AddOk("priority class " + name, fmt::format("has value {}", priorities_[name]));
      continue;
    }
    const bool has_manifest = name == "high" || name == "low";
    AddUnread("priority class " + name, found.status(),
              has_manifest ? "kubectl apply -f elasticdl/manifests/priority-classes.yaml"
                           : fmt::format("kubectl create priorityclass {} --value=NUMBER", name),
              Severity::kBlocker);
  }
  ComparePriorities();
}

void Preflight::ComparePriorities() {
  const auto value_of = [&](const PodGroup& group) {
    const auto known = priorities_.find(TextIn(SpecOf(group), "priorityClassName"));
    return known == priorities_.end() ? int64_t{0} : known->second;
  };
  int64_t workers = INT64_MIN;
  for (const PodGroup& group : groups_) {
    if (group.role == job::Role::kWorker) workers = std::max(workers, value_of(group));
  }
  for (const PodGroup& group : groups_) {
    if (group.role != job::Role::kMaster && group.role != job::Role::kPs) continue;
    if (value_of(group) >= workers) continue;
    const std::string_view role = job::NameOf(group.role);
    AddMissing(
        fmt::format("priority of the {}", role),
        fmt::format("its value {} is lower than {}, that of a worker: when resources are short, a "
                    "worker of this job preempts it, which ends the job",
                    value_of(group), workers),
        fmt::format("set --{}_pod_priority to a class with a value of at least {}", role, workers));
  }
}

void Preflight::CheckAdmission() {
  for (const PodGroup& group : groups_) {
    CheckAdmission(fmt::format("admission of a {}", job::NameOf(group.role)), kube::kPods,
                   group.pod);
  }
  for (const kube::Object& service : services_) {
    CheckAdmission("admission of services", kube::kServices, service);
  }
}

void Preflight::CheckAdmission(const std::string& what, const kube::Resource& resource,
                               const kube::Object& object) {
  kube::Object dry_run = object;
  // The owner does not exist yet.
  dry_run.metadata().erase("ownerReferences");
  const Status accepted = client_.CreateDryRun(resource, dry_run).status();
  if (accepted.ok() || accepted.code() == Code::kAlreadyExists) {
    return AddOk(what, "the API server would accept it");
  }
  const std::string& why = accepted.message();
  // Other checks report a missing account or class; admission stops at it.
  const bool is_reported = why.find("error looking up service account") != std::string::npos ||
                           why.find("no PriorityClass with name") != std::string::npos;
  if (is_reported || IsUnreachable(accepted)) return AddUnknown(what, why);
  std::string fix = "change the flags or the cluster as the message of the server requires";
  if (why.find("violates PodSecurity") != std::string::npos) {
    fix = fmt::format(
        "use an image that does not run as root (USER in its Dockerfile) and no host_path, or "
        "request another policy: kubectl label namespace {} "
        "pod-security.kubernetes.io/enforce={} --overwrite",
        ns_, PodSecurityLevelOf(dry_run.fields()));
  } else if (why.find("exceeded quota") != std::string::npos) {
    fix = fmt::format("request fewer resources, or a larger quota: kubectl -n {} get resourcequota",
                      ns_);
  } else if (why.find(" usage per ") != std::string::npos) {
    fix = fmt::format(
        "change --*_resource_request and --*_resource_limit: kubectl -n {} get "
        "limitrange",
        ns_);
  }
  AddMissing(what, why, fix);
}

void Preflight::CheckClaims(Depth depth) {
  std::set<std::string> names;
  for (const PodGroup& group : groups_) {
    for (const json& volume : ListAt(group.pod.fields(), {"spec", "volumes"})) {
      names.insert(TextIn(FieldAt(volume, {"persistentVolumeClaim"}), "claimName"));
    }
  }
  names.erase("");
  for (const std::string& name : names) {
    const Result<kube::Object> found = client_.Get(kube::kPersistentVolumeClaims, {ns_, name});
    if (!found.ok()) {
      AddUnread(
          "claim " + name, found.status(),
          fmt::format("kubectl -n {} apply -f FILE, where FILE defines a PersistentVolumeClaim {}",
                      ns_, name),
          Severity::kBlocker);
    } else if (depth == Depth::kAll) {
      CheckClaim(*found);
    }
  }
}

void Preflight::CheckClaim(const kube::Object& claim) {
  const std::string what = "claim " + claim.name();
  const std::string describe = fmt::format("kubectl -n {} describe pvc {}", ns_, claim.name());
  if (claim.deleting()) {
    AddMissing(what, "is being deleted", describe);
    return;
  }
  const std::string phase = TextIn(FieldAt(claim.fields(), {"status"}), "phase");
  if (phase == "Bound") return AddOk(what, "is bound");
  const std::string name = TextIn(FieldAt(claim.fields(), {"spec"}), "storageClassName");
  if (phase == "Pending" && !name.empty()) {
    const Result<kube::Object> found = client_.Get(kube::kStorageClasses, {"", name});
    if (found.ok() && TextIn(found->fields(), "volumeBindingMode") == "WaitForFirstConsumer") {
      return AddOk(what, "will be bound when the first pod uses it");
    }
    if (!found.ok() && found.status().code() != Code::kNotFound) {
      return AddUnknown(what, "is not bound yet, and may wait for the first pod that uses it",
                        describe);
    }
  }
  AddMissing(what, fmt::format("is not bound (phase {})", phase.empty() ? "unknown" : phase),
             describe);
}

void Preflight::CheckSecrets() {
  std::map<std::string, std::set<std::string>> read;  // keys by secret
  std::set<std::string> pulls;
  for (const PodGroup& group : groups_) {
    for (const json& secret : ListAt(group.pod.fields(), {"spec", "imagePullSecrets"})) {
      pulls.insert(TextIn(secret, "name"));
    }
    for (const json& volume : ListAt(group.pod.fields(), {"spec", "volumes"})) {
      const json& secret = FieldAt(volume, {"secret"});
      if (!FlagIn(secret, "optional")) read[TextIn(secret, "secretName")];
    }
    for (const json& container : ListAt(group.pod.fields(), {"spec", "containers"})) {
      for (const json& variable : ListAt(container, {"env"})) {
        const json& secret = FieldAt(variable, {"valueFrom", "secretKeyRef"});
        if (FlagIn(secret, "optional")) continue;
        read[TextIn(secret, "name")].insert(TextIn(secret, "key"));
      }
    }
  }
  read.erase("");
  read.erase(job_secret_);
  for (const std::string& name : pulls) CheckSecret(name, {}, SecretUse::kPull);
  for (const auto& [name, keys] : read) CheckSecret(name, keys, SecretUse::kRead);
}

void Preflight::CheckSecret(const std::string& name, const std::set<std::string>& keys,
                            SecretUse use) {
  const bool pulls = use == SecretUse::kPull;
  const std::string what = (pulls ? "pull secret " : "secret ") + name;
  std::string fix = fmt::format("kubectl -n {} create secret ", ns_);
  if (pulls) {
    fix += fmt::format("docker-registry {} --docker-server=... --docker-username=...", name);
  } else {
    fix += fmt::format("generic {}", name);
    for (const std::string& key : keys) fix += fmt::format(" --from-literal={}=...", key);
  }
  const Result<kube::Object> found = client_.Get(kube::kSecrets, {ns_, name});
  if (!found.ok()) return AddUnread(what, found.status(), fix, Severity::kWarning);
  const std::string type = TextIn(found->fields(), "type");
  if (pulls && !type.starts_with("kubernetes.io/dockerc")) {
    AddMissing(what, fmt::format("has type {}, which cannot be used to pull images", type), fix);
    return;
  }
  for (const std::string& key : keys) {
    if (!FieldAt(found->fields(), {"data", key.c_str()}).is_null()) continue;
    AddMissing(what, fmt::format("has no key {}", key),
               fmt::format("kubectl -n {} edit secret {}, and add the key {}", ns_, name, key));
    return;
  }
  AddOk(what, "exists");
}

void Preflight::CheckImages() {
  std::map<std::string, bool> wanted;  // whether pods pull it even if the node has it
  for (const PodGroup& group : groups_) {
    for (const json& container : ListAt(group.pod.fields(), {"spec", "containers"})) {
      wanted[TextIn(container, "image")] |= TextIn(container, "imagePullPolicy") == "Always";
    }
  }
  wanted.erase("");
  std::map<std::string, std::string> nodes_by_image;
  for (const kube::Object& node : nodes_.ok() ? nodes_->items : std::vector<kube::Object>()) {
    for (const json& image : ListAt(node.fields(), {"status", "images"})) {
      for (const json& name : ListAt(image, {"names"})) {
        if (name.is_string())
          nodes_by_image.emplace(FullImageName(name.get<std::string>()), node.name());
      }
    }
  }
  for (const auto& [name, always] : wanted) {
    const auto found = nodes_by_image.find(FullImageName(name));
    if (found == nodes_by_image.end()) {
      AddUnknown("image " + name,
                 "no node reports it; whether it can be pulled shows when a pod pulls it");
    } else if (always) {
      AddUnknown(
          "image " + name,
          fmt::format("node {} has it, but the pull policy Always pulls it again", found->second),
          "set --image_pull_policy=IfNotPresent to use the image on the node");
    } else {
      AddOk("image " + name, fmt::format("node {} has it", found->second));
    }
  }
}

void Preflight::CheckQuotas() {
  const Result<kube::ObjectList> quotas = client_.List(kube::kResourceQuotas, ns_);
  if (!quotas.ok()) return AddUnknown("quota", quotas.status().message());
  for (const kube::Object& quota : quotas->items) {
    findings_.push_back(CheckQuota(quota, groups_));
  }
  if (quotas->items.empty()) AddOk("quota", "the namespace has none");
}

void Preflight::CheckCapacity() {
  if (!nodes_.ok()) return AddUnknown("capacity", nodes_.status().message());
  const Result<kube::ObjectList> pods = client_.List(kube::kPods, "");
  ClusterCapacity capacity(nodes_->items, pods.ok() ? pods->items : std::vector<kube::Object>());
  if (!FitAlone(capacity)) return;
  if (!pods.ok()) {
    return AddUnknown("capacity", "each replica fits on a node; what runs there now is unknown: " +
                                      pods.status().message());
  }
  FitTogether(capacity);
}

bool Preflight::FitAlone(const ClusterCapacity& capacity) {
  bool fit = true;
  std::set<job::Role> seen;
  for (const PodGroup& group : groups_) {
    if (capacity.FitsAlone(group.pod) || !seen.insert(group.role).second) continue;
    fit = false;
    const std::string_view role = job::NameOf(group.role);
    if (capacity.CountNodesFor(group.pod) == 0) {
      AddMissing(
          fmt::format("capacity for a {}", role),
          fmt::format("no node of {} accepts it: each is not ready, cordoned, tainted or not "
                      "selected",
                      nodes_->items.size()),
          "see `kubectl describe nodes`; add tolerations with --cluster_spec_json");
      continue;
    }
    ResourceList largest = capacity.LargestFor(group.pod);
    largest.erase("pods");
    AddMissing(fmt::format("capacity for a {}", role),
               fmt::format("it requests {}, but the largest node has {}",
                           Show(RequestsOfReplica(group)), Show(largest)),
               fmt::format("lower --{}_resource_request, or add a larger node", role));
  }
  return fit;
}

void Preflight::FitTogether(ClusterCapacity& capacity) {
  int workers = 0;
  int workers_placed = 0;
  std::vector<std::string> left_out;
  for (const PodGroup& group : groups_) {
    const auto known = priorities_.find(TextIn(SpecOf(group), "priorityClassName"));
    const int64_t priority = known == priorities_.end() ? 0 : known->second;
    const int placed = capacity.Place(group.pod, priority, group.count);
    if (group.role == job::Role::kWorker) {
      workers += group.count;
      workers_placed += placed;
    } else if (placed < group.count && group.role != job::Role::kEvaluator) {
      left_out.push_back(fmt::format("{} ({} each)", CountOf(group, group.count - placed),
                                     Show(RequestsOfReplica(group))));
    }
  }
  if (workers > 0 && workers_placed == 0 && !TrainsWithoutWorkers(groups_)) {
    left_out.push_back(fmt::format("one worker ({})", Show(RequestsOfReplica(groups_.back()))));
  }
  if (!left_out.empty()) {
    AddMissing(
        "capacity",
        fmt::format("not enough free resources for {}; the job would wait until other pods end",
                    fmt::join(left_out, ", ")),
        "lower --*_resource_request, end other jobs, or add nodes");
    return;
  }
  AddOk("capacity",
        workers_placed == workers
            ? "all replicas fit now"
            : fmt::format("{} of {} workers fit now; the others would wait for free resources",
                          workers_placed, workers));
}

}  // namespace edl::backend::kubernetes
