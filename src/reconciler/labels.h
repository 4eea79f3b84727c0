#pragma once

#include <optional>
#include <string>

#include "reconciler/replica_type.h"

#include "kube/object.h"

namespace edl::reconciler {

// The labels of pods and services. They are upstream's, so that its users' scripts work and running
// jobs can be taken over in both directions.
inline constexpr const char* kOperatorNameLabel = "training.kubeflow.org/operator-name";
inline constexpr const char* kJobNameLabel = "training.kubeflow.org/job-name";
inline constexpr const char* kReplicaTypeLabel = "training.kubeflow.org/replica-type";
inline constexpr const char* kReplicaIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr const char* kJobRoleLabel = "training.kubeflow.org/job-role";
inline constexpr const char* kControllerName = "tfjob-controller";

// The labels of all objects of a job; a "/" in the name becomes "-".
kube::Object::Labels JobLabels(const std::string& job);
// The labels by which the service of a replica selects its pod.
kube::Object::Labels ReplicaLabels(const std::string& job, ReplicaType type, int index);

// Reads the role and index in the labels of an object. nullopt: a label is missing or invalid.
struct Slot {
  ReplicaType type = ReplicaType::kWorker;
  int index = 0;

  auto operator<=>(const Slot&) const = default;
};
std::optional<Slot> SlotOf(const kube::Object& object);

// The owner that controls the object. nullopt: none does.
std::optional<kube::OwnerReference> ControllerOf(const kube::Object& object);

}  // namespace edl::reconciler
