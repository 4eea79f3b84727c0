#include "reconciler/pod_group.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reconciler/replica_objects.h"
#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

// In thousandths. The sum of two of them does not overflow.
constexpr int64_t kMostOfResource = int64_t{1} << 61;

int64_t PriorityOf(const ReplicaSpec& spec, const std::map<std::string, int64_t>& priorities) {
  const json& pod = FieldAt(spec.pod_template, {"spec"});
  const auto found = priorities.find(TextIn(pod, "priorityClassName"));
  return found == priorities.end() ? NumberIn(pod, "priority") : found->second;
}

// Adds the requests of all containers of a pod, or their limits where requests are missing.
void AddRequests(const json& pod_spec, int64_t pods, std::map<std::string, int64_t>& sums) {
  for (const json& container : ListAt(pod_spec, {"containers"})) {
    const json& limits = FieldAt(container, {"resources", "limits"});
    json wanted = limits.is_object() ? limits : json::object();
    const json& requests = FieldAt(container, {"resources", "requests"});
    if (requests.is_object()) wanted.update(requests);
    for (const auto& [name, amount] : wanted.items()) {
      const auto text = ScalarText(amount);
      const Result<int64_t> parsed = text.ok() ? ParseQuantity(*text) : text.status();
      if (!parsed.ok() || *parsed <= 0 || pods <= 0) continue;
      const int64_t added = std::min(*parsed, kMostOfResource / pods) * pods;
      sums[name] = std::min(kMostOfResource, sums[name] + added);
    }
  }
}

std::string QuantityText(int64_t thousandths) {
  if (thousandths % 1000 == 0) return fmt::format("{}", thousandths / 1000);
  return fmt::format("{}m", thousandths);
}

using Counts = std::map<ReplicaType, int64_t>;

// The replicas of a role that have not ended, whose pods the scheduler places.
int64_t NumWaiting(const TFJob& job, const Counts& ended, ReplicaType type) {
  const auto found = ended.find(type);
  const int64_t gone = found == ended.end() ? 0 : found->second;
  return std::max<int64_t>(job.replicas.at(type).replicas - gone, 0);
}

// Replicas that have ended do not run again, so the others must not wait for them.
int64_t MinMembers(const TFJob& job, const Counts& ended) {
  int64_t waiting = 0;
  for (const auto& [type, spec] : job.replicas) waiting += NumWaiting(job, ended, type);
  const int64_t wanted = job.scheduling.min_available.value_or(waiting);
  // A limit that is too high from the start is a decision of the user: the job then stays pending.
  const bool some_ended = waiting < job.total_replicas();
  return std::max<int64_t>(some_ended ? std::min(wanted, waiting) : wanted, 0);
}

json MinResources(const TFJob& job, const Counts& ended, int64_t members,
                  const std::map<std::string, int64_t>& priorities) {
  std::vector<ReplicaType> types;
  for (const auto& [type, spec] : job.replicas) types.push_back(type);
  std::stable_sort(types.begin(), types.end(), [&](ReplicaType a, ReplicaType b) {
    return PriorityOf(job.replicas.at(a), priorities) > PriorityOf(job.replicas.at(b), priorities);
  });
  std::map<std::string, int64_t> sums;
  for (const ReplicaType type : types) {
    const int64_t pods = std::min(NumWaiting(job, ended, type), members);
    AddRequests(FieldAt(job.replicas.at(type).pod_template, {"spec"}), pods, sums);
    members -= pods;
  }
  json out = json::object();
  for (const auto& [name, amount] : sums) out[name] = QuantityText(amount);
  return out;
}

// Whether the amounts of all resources are the same, in any notation: a scheduler may have written
// them in another one.
bool SameResources(const json& a, const json& b) {
  if (!a.is_object() || !b.is_object() || a.size() != b.size()) return a == b;
  const auto amount = [](const json& value) {
    const auto text = ScalarText(value);
    return text.ok() ? ParseQuantity(*text) : text.status();
  };
  for (const auto& [name, value] : a.items()) {
    const auto other = b.find(name);
    if (other == b.end()) return false;
    if (value == *other) continue;
    const Result<int64_t> left = amount(value);
    const Result<int64_t> right = amount(*other);
    if (!left.ok() || !right.ok() || *left != *right) return false;
  }
  return true;
}

}  // namespace

kube::Object MakePodGroup(const TFJob& job, const std::map<ReplicaType, int64_t>& ended,
                          const std::string& gang_scheduler,
                          const std::map<std::string, int64_t>& priorities) {
  const kube::Resource& resource = PodGroupsOf(gang_scheduler);
  kube::Object group(resource, job.key);
  for (const auto& [name, value] : job.annotations) {
    if (name != "kubectl.kubernetes.io/last-applied-configuration") {
      group.set_annotation(name, value);
    }
  }
  AddJobAsOwner(job, group);
  const int64_t members = MinMembers(job, ended);
  json spec = {{"minMember", members}};
  json resources = job.scheduling.min_resources.is_object()
                       ? job.scheduling.min_resources
                       : MinResources(job, ended, members, priorities);
  if (!resources.empty()) spec["minResources"] = std::move(resources);
  if (resource == kVolcanoPodGroups) {
    spec["queue"] = job.scheduling.queue.empty() ? "default" : job.scheduling.queue;
    if (!job.scheduling.priority_class.empty()) {
      spec["priorityClassName"] = job.scheduling.priority_class;
    }
  } else if (job.scheduling.timeout_seconds) {
    spec["scheduleTimeoutSeconds"] = *job.scheduling.timeout_seconds;
  }
  group.fields()["spec"] = std::move(spec);
  return group;
}

std::optional<kube::Object> UpdatedPodGroup(const kube::Object& stored,
                                            const kube::Object& wanted) {
  kube::Object out = stored;
  json& spec = out.fields()["spec"];
  if (!spec.is_object()) spec = json::object();
  for (const auto& [name, value] : FieldAt(wanted.fields(), {"spec"}).items()) {
    if (name == "queue" && spec.contains("queue")) continue;
    if (name == "minResources" && SameResources(FieldAt(spec, {"minResources"}), value)) continue;
    spec[name] = value;
  }
  if (out == stored) return std::nullopt;
  return out;
}

bool IsWaiting(const kube::Object& pod_group) {
  const std::string phase = TextIn(FieldAt(pod_group.fields(), {"status"}), "phase");
  return TextIn(pod_group.fields(), "apiVersion") == kVolcanoPodGroups.api_version() &&
         (phase.empty() || phase == "Pending");
}

}  // namespace edl::reconciler
