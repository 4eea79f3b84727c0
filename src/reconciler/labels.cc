#include "reconciler/labels.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace edl::reconciler {

kube::Object::Labels JobLabels(const std::string& job) {
  std::string name = job;
  std::replace(name.begin(), name.end(), '/', '-');
  return {{kOperatorNameLabel, kControllerName}, {kJobNameLabel, name}};
}

kube::Object::Labels ReplicaLabels(const std::string& job, ReplicaType type, int index) {
  kube::Object::Labels labels = JobLabels(job);
  labels[kReplicaTypeLabel] = LowerNameOf(type);
  labels[kReplicaIndexLabel] = fmt::format("{}", index);
  return labels;
}

std::optional<Slot> SlotOf(const kube::Object& object) {
  const auto type = object.label(kReplicaTypeLabel);
  const auto index = object.label(kReplicaIndexLabel);
  if (!type || !index) return std::nullopt;
  const auto parsed_type = ParseReplicaType(*type);
  int number = 0;
  const char* const end = index->data() + index->size();
  const auto parsed = std::from_chars(index->data(), end, number);
  if (!parsed_type || parsed.ec != std::errc() || parsed.ptr != end || number < 0) {
    return std::nullopt;
  }
  return Slot{*parsed_type, number};
}

std::optional<kube::OwnerReference> ControllerOf(const kube::Object& object) {
  for (const kube::OwnerReference& owner : object.owners()) {
    if (owner.controller) return owner;
  }
  return std::nullopt;
}

}  // namespace edl::reconciler
