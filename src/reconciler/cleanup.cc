#include "reconciler/cleanup.h"

#include <set>

namespace edl::reconciler {
namespace {

// A pod on a lost node is deleted by force this long after its grace period: its kubelet would have
// removed it long before if it could.
constexpr std::chrono::seconds kLostNodeGrace{10};
// The same if it is not certain that the node is lost.
constexpr std::chrono::seconds kMaybeLostNodeGrace{60};

}  // namespace

void Cleanup::DeletePod(const ReplicaPod& pod) {
  if (pod.deletion_time) return ForceFromLostNode(pod);
  plan_.actions.push_back(
      {.kind = Action::Kind::kDeletePod, .object = {}, .name = pod.name, .uid = pod.uid});
}

// A pod on a node that is unreachable keeps its name until somebody deletes it by force.
void Cleanup::ForceFromLostNode(const ReplicaPod& pod) {
  if (!pod.deletion_time || pod.node_loss == NodeLoss::kNone) return;
  if (*pod.deletion_time == kUnknownEnd) return;  // the watch will report it
  const bool certain = pod.node_loss == NodeLoss::kCertain;
  const WallTime due = *pod.deletion_time + (certain ? kLostNodeGrace : kMaybeLostNodeGrace);
  if (due > now_) return plan_.ReconcileAgainAt(due);
  plan_.actions.push_back({.kind = Action::Kind::kDeletePod,
                           .object = {},
                           .name = pod.name,
                           .uid = pod.uid,
                           .force = true});
}

void Cleanup::DeleteService(const ReplicaService& service) {
  if (service.deleting) return;
  plan_.actions.push_back({.kind = Action::Kind::kDeleteService,
                           .object = {},
                           .name = service.name,
                           .uid = service.uid});
}

void Cleanup::DeletePodGroup() {
  if (!pod_group_ || pod_group_->deleting()) return;
  const auto owner = ControllerOf(*pod_group_);
  if (!owner || owner->uid != job_.uid) return;
  plan_.actions.push_back({.kind = Action::Kind::kDeletePodGroup,
                           .object = {},
                           .name = pod_group_->name(),
                           .uid = pod_group_->uid()});
}

// A service without a pod is deleted too: an operator that was restarted after it had deleted the
// pod finds only the service.
void Cleanup::DeletePods(CleanPodPolicy policy) {
  if (policy == CleanPodPolicy::kNone) return;
  std::set<Slot> kept;
  for (const ReplicaPod& pod : own_.pods) {
    if (policy == CleanPodPolicy::kRunning && pod.terminal) {
      kept.insert(pod.slot);
    } else {
      DeletePod(pod);
    }
  }
  for (const ReplicaService& service : own_.services) {
    if (!kept.contains(service.slot)) DeleteService(service);
  }
}

void Cleanup::DeleteAll() {
  DeletePods(CleanPodPolicy::kAll);
  DeletePodGroup();
}

void Cleanup::ExpireJob() {
  if (!job_.ttl || job_.suspended) return;
  WallTime end = now_;
  if (plan_.status.completion_time) {
    end = *plan_.status.completion_time;
  } else {
    // The upstream operator left completionTime out in some cases.
    const Conditions& conditions = plan_.status.conditions;
    const Condition* ended = conditions.Find(conditions.IsTrue(kFailed) ? kFailed : kSucceeded);
    if (ended != nullptr) end = ended->changed;
  }
  const WallTime expiry = end + *job_.ttl;
  if (expiry > now_) return plan_.ReconcileAgainAt(expiry);
  plan_.actions.push_back(
      {.kind = Action::Kind::kDeleteJob, .object = {}, .name = job_.key.name, .uid = job_.uid});
}

void Cleanup::AfterEnd() {
  DeletePods(job_.clean);
  DeletePodGroup();
  ExpireJob();
}

}  // namespace edl::reconciler
