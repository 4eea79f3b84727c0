#include "backend/kubernetes/cluster_capacity.h"

#include <algorithm>

#include "base/json.h"
#include "kube/pod.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

bool Tolerates(const json& toleration, const json& taint) {
  const std::string effect = TextIn(toleration, "effect");
  if (!effect.empty() && effect != TextIn(taint, "effect")) return false;
  const std::string key = TextIn(toleration, "key");
  const bool exists = TextIn(toleration, "operator") == "Exists";
  if (key.empty()) return exists;
  return key == TextIn(taint, "key") &&
         (exists || TextIn(toleration, "value") == TextIn(taint, "value"));
}

bool IsReady(const json& node) {
  const json& conditions = ListAt(node, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [](const json& condition) {
    return TextIn(condition, "type") == "Ready" && TextIn(condition, "status") == "True";
  });
}

// How many times `request` is in `free`, at most `count`.
int TimesIn(const ResourceList& free, const ResourceList& request, int count) {
  int64_t times = count;
  for (const auto& [name, amount] : request) {
    if (amount > 0) times = std::min(times, std::max<int64_t>(AmountOf(free, name), 0) / amount);
  }
  return static_cast<int>(times);
}

}  // namespace

ClusterCapacity::ClusterCapacity(const std::vector<kube::Object>& nodes,
                                 const std::vector<kube::Object>& pods) {
  std::map<std::string, size_t> places;
  for (const kube::Object& node : nodes) {
    places[node.name()] = nodes_.size();
    nodes_.push_back({node, ResourceListIn(FieldAt(node.fields(), {"status", "allocatable"})), {}});
  }
  for (const kube::Object& pod : pods) {
    const kube::PodState state = kube::PodStateOf(pod);
    const auto place = places.find(state.node);
    if (place == places.end() || state.terminal()) continue;
    nodes_[place->second].taken.push_back(
        {NumberIn(FieldAt(pod.fields(), {"spec"}), "priority"), RequestsOf(pod.fields())});
  }
}

bool ClusterCapacity::Takes(const Node& node, const kube::Object& pod) {
  const json& fields = node.object.fields();
  if (FlagIn(FieldAt(fields, {"spec"}), "unschedulable") || !IsReady(fields)) {
    return false;
  }
  const json& selector = FieldAt(pod.fields(), {"spec", "nodeSelector"});
  for (const auto& [name, value] : selector.items()) {
    if (FieldAt(fields, {"metadata", "labels", name.c_str()}) != value) return false;
  }
  const json& tolerations = ListAt(pod.fields(), {"spec", "tolerations"});
  for (const json& taint : ListAt(fields, {"spec", "taints"})) {
    if (TextIn(taint, "effect") == "PreferNoSchedule") continue;
    if (std::none_of(tolerations.begin(), tolerations.end(),
                     [&](const json& one) { return Tolerates(one, taint); })) {
      return false;
    }
  }
  return true;
}

int ClusterCapacity::CountNodesFor(const kube::Object& pod) const {
  return static_cast<int>(std::count_if(nodes_.begin(), nodes_.end(),
                                        [&](const Node& node) { return Takes(node, pod); }));
}

bool ClusterCapacity::FitsAlone(const kube::Object& pod) const {
  const ResourceList request = RequestsOf(pod.fields());
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return Takes(node, pod) && TimesIn(node.allocatable, request, 1) == 1;
  });
}

ResourceList ClusterCapacity::LargestFor(const kube::Object& pod) const {
  ResourceList largest;
  for (const auto& [name, amount] : RequestsOf(pod.fields())) {
    int64_t& most = largest[name];
    for (const Node& node : nodes_) {
      if (Takes(node, pod)) most = std::max(most, AmountOf(node.allocatable, name));
    }
  }
  return largest;
}

int ClusterCapacity::Place(const kube::Object& pod, int64_t priority, int count) {
  const ResourceList request = RequestsOf(pod.fields());
  int placed = 0;
  for (Node& node : nodes_) {
    if (placed == count) break;
    if (!Takes(node, pod)) continue;
    ResourceList free = node.allocatable;
    for (const Taken& taken : node.taken) {
      if (taken.priority >= priority) Add(free, taken.amounts, -1);
    }
    const int here = TimesIn(free, request, count - placed);
    if (here == 0) continue;
    ResourceList amounts;
    Add(amounts, request, here);
    node.taken.push_back({priority, std::move(amounts)});
    placed += here;
  }
  return placed;
}

}  // namespace edl::backend::kubernetes
