#include "tfjob_convert/rewrite.h"

#include "tfjob_convert/fields.h"
#include "tfjob_convert/old_labels.h"
#include "tfjob_convert/replica.h"
#include "tfjob_convert/replica_list.h"
#include <fmt/ranges.h>

#include "base/flags.h"
#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

constexpr std::string_view kGroup = "kubeflow.org/";
constexpr std::string_view kFirstGroup = "tensorflow.org/";  // of the first TfJobs
constexpr std::string_view kNow = "kubeflow.org/v1";
constexpr auto kVersions =
    std::to_array<std::string_view>({"v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1"});
constexpr auto kCleanPodPolicies = std::to_array<std::string_view>({"All", "Running", "None"});
constexpr auto kSuccessPolicies = std::to_array<std::string_view>({"", "AllWorkers"});
constexpr size_t kMostRoles = 1000;  // v1 has five
// Fields that the API server sets. An object that has them cannot be created again.
constexpr auto kServerFields = std::to_array<std::string_view>(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"});
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool IsKindOf(const Json& object, std::string_view kind) {
  const std::string version = TextOf(object, "apiVersion");
  return SameLetters(TextOf(object, "kind"), kind) &&
         (version.starts_with(kGroup) || version.starts_with(kFirstGroup));
}

// Removes what only an object in a cluster has.
Status RemoveClusterState(Json& job, Notes& notes) {
  if (Find(job, "status") != nullptr) {
    Take(job, "status");
    notes.Change("status removed");
  }
  Json* metadata = Find(job, "metadata");
  if (metadata == nullptr || metadata->is_null()) return Ok();
  if (!metadata->is_object()) {
    return notes.Error({"metadata"}, "metadata must be a map, found {}", Shown(*metadata));
  }
  for (const std::string_view field : kServerFields) {
    if (!Has(*metadata, field)) continue;
    Take(*metadata, field);
    notes.Change("metadata.{} removed", field);
  }
  Json* annotations = Find(*metadata, "annotations");
  if (annotations == nullptr || Find(*annotations, kLastApplied) == nullptr) return Ok();
  Take(*annotations, kLastApplied);
  notes.Change("metadata.annotations.{} removed", kLastApplied);
  return Ok();
}

// The map spec.runPolicy, which is added first if it is missing or null.
Json& RunPolicyOf(Json& spec) {
  if (!Has(spec, "runPolicy")) {
    if (Find(spec, "runPolicy") != nullptr) spec.erase("runPolicy");
    AddFirst(spec, "runPolicy", Json::object());
  }
  return spec["runPolicy"];
}

// Moves a field of spec into spec.runPolicy.
void MovePolicy(Json& spec, std::string_view field, bool old, Notes& notes) {
  Json value = Take(spec, field);
  if (value.is_null()) {
    notes.Change("spec.{} removed; it is null", field);
    return;
  }
  Json& policy = RunPolicyOf(spec);
  if (!Has(policy, field)) {
    policy[std::string(field)] = std::move(value);
    notes.Change("spec.{} -> spec.runPolicy.{}", field, field);
  } else if (policy[std::string(field)] == value) {
    notes.Change("spec.{} removed; spec.runPolicy has it too", field);
  } else if (old) {
    // Old operators did not read runPolicy.
    notes.Change("spec.{0} ({1}) -> spec.runPolicy.{0}, which was {2}", field, Shown(value),
                 Shown(policy[std::string(field)]));
    policy[std::string(field)] = std::move(value);
  } else {
    notes.Change("spec.{0} ({1}) removed; spec.runPolicy.{0} ({2}) counts", field, Shown(value),
                 Shown(policy[std::string(field)]));
  }
}

Status RewriteRunPolicy(Json& spec, bool old, Notes& notes) {
  if (Has(spec, "runPolicy") && !spec["runPolicy"].is_object()) {
    return notes.Error({"spec", "runPolicy"}, "spec.runPolicy must be a map, found {}",
                       Shown(spec["runPolicy"]));
  }
  if (Has(spec, "runPolicy")) {
    FixCase(spec["runPolicy"], kRunPolicyFields, "spec.runPolicy", notes);
  }
  for (const std::string_view field : kRunPolicyFields) {
    if (Find(spec, field) != nullptr) MovePolicy(spec, field, old, notes);
  }
  if (!Has(spec, "runPolicy")) return Ok();
  Json& policy = spec["runPolicy"];
  WarnOfUnknownValue(policy, "cleanPodPolicy", kCleanPodPolicies, "spec.runPolicy", notes);
  WarnOfUnknownFields(policy, kRunPolicyFields, {}, "spec.runPolicy", notes);
  if (!Has(policy, "schedulingPolicy")) return Ok();
  Json& scheduling = policy["schedulingPolicy"];
  const std::string where = "spec.runPolicy.schedulingPolicy";
  if (!scheduling.is_object()) {
    return notes.Error({"spec"}, "{} must be a map, found {}", where, Shown(scheduling));
  }
  FixCase(scheduling, kSchedulingPolicyFields, where, notes);
  WarnOfUnknownFields(scheduling, kSchedulingPolicyFields, {}, where, notes);
  return Ok();
}

// The roles of the job with their paths in the original document.
std::vector<Replica> ReplicasOf(const Json& replicas, const std::vector<Replica>& from_list) {
  if (!from_list.empty()) return from_list;
  std::vector<Replica> out;
  for (const auto& [role, spec] : replicas.items()) {
    out.push_back({.role = role, .path = {"spec", "tfReplicaSpecs", role}});
  }
  return out;
}

// The canonical names of the job's roles. Warns of other names.
std::vector<std::string_view> RolesOf(const std::vector<Replica>& replicas, Notes& notes) {
  std::vector<std::string_view> roles;
  for (const Replica& replica : replicas) {
    const size_t before = roles.size();
    for (const std::string_view role : kRoles) {
      if (SameLetters(role, replica.role)) roles.push_back(role);
    }
    if (roles.size() > before) continue;
    const auto near = NearestNames(replica.role, {kRoles.begin(), kRoles.end()});
    notes.Warn("{}: there is no such role{}", replica.shown(),
               near.empty() ? fmt::format("; the roles are {}", fmt::join(kRoles, ", "))
                            : fmt::format("; did you mean {}?", near.front()));
  }
  if (IsOneOf("Chief", roles) && IsOneOf("Master", roles)) {
    notes.Warn("spec.tfReplicaSpecs has Chief and Master; v1 allows only one of them");
  }
  return roles;
}

int64_t CountReplicas(const Json& replicas) {
  int64_t count = 0;
  for (const Json& spec : replicas) {
    const Json* given = Find(spec, "replicas");
    if (given != nullptr && given->is_number_integer()) {
      // A larger number is not one replica either.
      count += std::clamp<int64_t>(given->get<int64_t>(), 0, 2);
    } else {
      ++count;
    }
  }
  return count;
}

// Keeps the defaults of old versions, and warns of other differences in behaviour.
void KeepOldBehaviour(Json& spec, const std::string& version, Names roles, Notes& notes) {
  if (!Has(spec, "runPolicy") || !Has(spec["runPolicy"], "cleanPodPolicy")) {
    RunPolicyOf(spec)["cleanPodPolicy"] = "Running";
    notes.Change("spec.runPolicy.cleanPodPolicy: Running added; the default of {} is None", kNow);
  }
  const Json* replicas = Find(spec, "tfReplicaSpecs");
  if (replicas == nullptr || !replicas->is_object()) return;
  std::vector<std::string> without;
  for (const auto& [role, replica] : replicas->items()) {
    if (!Has(replica, "restartPolicy")) without.push_back(OneLine(role, 40));
  }
  if (!without.empty()) {
    notes.Warn(
        "no restartPolicy for {}: with v1's default, Never, the job fails when a pod fails; "
        "OnFailure and ExitCode restart it",
        fmt::join(without, ", "));
  }
  if (version != "v1alpha1" && IsOneOf("Evaluator", roles)) {
    notes.Warn(
        "v1 lists the evaluator in the cluster of TF_CONFIG; the annotation "
        "tfjob.elasticdl.org/evaluator-in-cluster: \"false\" keeps the old form");
  }
  if (CountReplicas(*replicas) == 1) notes.Warn("v1 sets no TF_CONFIG for a job with one replica");
}

Status RewriteReplicas(Json& spec, const std::string& version, Notes& notes) {
  EDL_ASSIGN_OR_RETURN(const std::vector<Replica> from_list, ReplaceReplicaList(spec, notes));
  Json* replicas = Find(spec, "tfReplicaSpecs");
  if (replicas != nullptr && !replicas->is_null() && !replicas->is_object()) {
    return notes.Error({"spec", "tfReplicaSpecs"},
                       "spec.tfReplicaSpecs must be a map from roles to replicas, found {}",
                       Shown(*replicas));
  }
  if (replicas != nullptr && replicas->size() > kMostRoles) {
    return notes.Error({"spec", "tfReplicaSpecs"},
                       "spec.tfReplicaSpecs has {} roles; at most {} are converted",
                       replicas->size(), kMostRoles);
  }
  const std::vector<Replica> list = ReplicasOf(
      replicas == nullptr || replicas->is_null() ? Json::object() : *replicas, from_list);
  if (list.empty()) notes.Warn("spec.tfReplicaSpecs has no replicas, which v1 requires");
  for (const Replica& replica : list) {
    Json& of_role = (*replicas)[replica.role];
    // First, so that the check sees what is rewritten below.
    if (of_role.is_object()) FixCase(of_role, kReplicaFields, replica.shown(), notes);
    EDL_RETURN_IF_ERROR(CheckReplica(of_role, replica, notes));
  }
  ReplaceOldFields(spec, notes);
  for (const Replica& replica : list) {
    RewriteReplica(spec["tfReplicaSpecs"][replica.role], replica, notes);
  }
  const std::vector<std::string_view> roles = RolesOf(list, notes);
  if (version != "v1") {
    KeepOldBehaviour(spec, version, roles, notes);
  } else if (notes.changes() > 0 && IsOneOf("PS", roles) &&
             !(Has(spec, "runPolicy") && Has(spec["runPolicy"], "cleanPodPolicy"))) {
    notes.Warn(
        "cleanPodPolicy is not set: PS pods stay after the end of the job, because the "
        "default is None (Running before v1.6)");
  }
  return Ok();
}

}  // namespace

bool IsTfJob(const Json& object) { return IsKindOf(object, "TFJob"); }
bool IsTfJobList(const Json& object) { return IsKindOf(object, "TFJobList"); }

Result<std::string> SetVersion(Json& object, Notes& notes) {
  const std::string given = TextOf(object, "apiVersion");
  const std::string version = given.substr(given.find('/') + 1);
  if (!IsOneOf(version, kVersions)) {
    return notes.Error({"apiVersion"}, "there is no version {}; the versions are {}",
                       OneLine(given, 60), fmt::join(kVersions, ", "));
  }
  if (given != kNow) {
    notes.Change("apiVersion {} -> {}", given, kNow);
    object["apiVersion"] = kNow;
  }
  const std::string kind = TextOf(object, "kind");
  const std::string_view right = IsTfJob(object) ? "TFJob" : "TFJobList";
  if (kind != right) {
    notes.Change("kind {} -> {}", kind, right);
    object["kind"] = right;
  }
  return version;
}

Status RewriteTfJob(Json& job, Notes& notes) {
  EDL_ASSIGN_OR_RETURN(const std::string version, SetVersion(job, notes));
  EDL_RETURN_IF_ERROR(RemoveClusterState(job, notes));
  Json* spec = Find(job, "spec");
  if (spec == nullptr || !spec->is_object()) {
    return notes.Error({"spec"}, "the TFJob has no spec, or spec is not a map");
  }
  FixCase(*spec, kSpecFields, "spec", notes);
  FixCase(*spec, kRunPolicyFields, "spec", notes);
  FixCase(*spec, kOldSpecFields, "spec", notes);
  EDL_RETURN_IF_ERROR(RewriteRunPolicy(*spec, version != "v1", notes));
  EDL_RETURN_IF_ERROR(RewriteReplicas(*spec, version, notes));
  WarnOfUnknownValue(*spec, "successPolicy", kSuccessPolicies, "spec", notes);
  WarnOfUnknownFields(*spec, kSpecFields, kRunPolicyFields, "spec", notes);
  ReportOldLabels(job, notes);
  return Ok();
}

}  // namespace edl::tfjob_convert
