#pragma once

#include <vector>

#include "reconciler/reconcile.h"

namespace edl::reconciler {

// The job's own objects, and the actions that adopt or release objects.
struct Claimed {
  std::vector<ReplicaPod> pods;
  std::vector<ReplicaService> services;
  std::vector<Action> actions;
};

// Decides which of the observed objects are the job's own, as controllers of Kubernetes do:
//   - an object that the job controls is its own, and is released if its label names another job;
//   - one without a controller is adopted if its label names the job and it has the name of its
//     replica. An object that is being deleted is not adopted, and a job that has ended or is being
//     deleted adopts nothing;
//   - one with another controller is never touched.
Claimed Claim(const Observed& observed);

// Whether the pod is being deleted because it belongs to a deleted job of the same name.
bool IsOfDeletedJob(const ReplicaPod& pod, const TFJob& job);

}  // namespace edl::reconciler
