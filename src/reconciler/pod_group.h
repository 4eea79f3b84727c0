#pragma once

#include <map>
#include <optional>
#include <string>

#include "reconciler/tfjob.h"

#include "kube/object.h"
#include "kube/resource.h"

namespace edl::reconciler {

inline constexpr kube::Resource kVolcanoPodGroups{"scheduling.volcano.sh", "v1beta1", "PodGroup",
                                                  "podgroups"};
inline constexpr kube::Resource kPluginPodGroups{"scheduling.x-k8s.io", "v1alpha1", "PodGroup",
                                                 "podgroups"};

// The kind of PodGroup that a scheduler reads.
inline const kube::Resource& PodGroupsOf(const std::string& gang_scheduler) {
  return gang_scheduler == "volcano" ? kVolcanoPodGroups : kPluginPodGroups;
}

// The PodGroup of a job: its pods are scheduled together or not at all. Replicas that have ended,
// of which `ended` has the number by role, are no members. Without minResources in the job, it has
// the sum of the requests of the minMember pods with the highest priority. `priorities` are the
// values of PriorityClasses by name.
kube::Object MakePodGroup(const TFJob& job, const std::map<ReplicaType, int64_t>& ended,
                          const std::string& gang_scheduler,
                          const std::map<std::string, int64_t>& priorities);

// `stored` with the spec of `wanted`. nullopt: they agree. Volcano's queue is never changed.
std::optional<kube::Object> UpdatedPodGroup(const kube::Object& stored, const kube::Object& wanted);

// Whether Volcano has not admitted the group yet: its pods must not be created.
bool IsWaiting(const kube::Object& pod_group);

}  // namespace edl::reconciler
