#pragma once

#include <string>

#include "reconciler/tfjob.h"

#include "kube/object.h"

namespace edl::reconciler {

// The reference by which objects belong to their job.
kube::OwnerReference OwnerOf(const TFJob& job);

void AddJobAsOwner(const TFJob& job, kube::Object& object);

// What the settings of the operator add to pods.
struct PodSettings {
  std::string cluster_domain;  // appended to host names in TF_CONFIG; may be empty
  std::string gang_scheduler;  // "volcano", the name of another scheduler, or empty
};

// The pod of a replica: its template with names, labels, owner, TF_CONFIG and restart policy.
kube::Object MakePod(const TFJob& job, ReplicaType type, int index, const PodSettings& settings);

// The memory that a replica's pod needs, roughly.
size_t ApproximatePodSize(const TFJob& job, ReplicaType type);

// The headless service of a replica, with all ports of the training container. A port without a
// name gets one, because a service with several ports needs names.
kube::Object MakeService(const TFJob& job, ReplicaType type, int index);

// Whether a template asks for another scheduler than `gang_scheduler`.
bool HasOtherScheduler(const TFJob& job, const std::string& gang_scheduler);
// Whether a template has a restart policy, which the policy of its role replaces.
bool HasTemplateRestartPolicy(const ReplicaSpec& spec);

}  // namespace edl::reconciler
