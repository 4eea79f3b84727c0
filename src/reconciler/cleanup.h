#pragma once

#include "reconciler/claim.h"
#include "reconciler/reconcile.h"

#include "base/clock.h"

namespace edl::reconciler {

// Adds deletions of a job's objects to the plan of one pass. An object that is being deleted is not
// deleted again, except by force from a node that is unreachable.
//
// Confined to one call of Reconcile. Everything that it refers to outlives it.
class Cleanup {
 public:
  Cleanup(const Observed& observed, const Claimed& own, WallTime now, Plan& plan)
      : job_(observed.job), pod_group_(observed.pod_group), own_(own), now_(now), plan_(plan) {}

  void DeletePod(const ReplicaPod& pod);
  // Deletes a pod by force that is being deleted, if its node is lost.
  void ForceFromLostNode(const ReplicaPod& pod);
  void DeleteService(const ReplicaService& service);
  // Deletes all pods, services and the PodGroup.
  void DeleteAll();
  // Deletes the objects of a job that has ended, as its policy says, and the job after its time to
  // live.
  void AfterEnd();

 private:
  void DeletePods(CleanPodPolicy policy);
  void DeletePodGroup();
  void ExpireJob();

  const TFJob& job_;
  const std::optional<kube::Object>& pod_group_;
  const Claimed& own_;
  const WallTime now_;
  Plan& plan_;
};

}  // namespace edl::reconciler
