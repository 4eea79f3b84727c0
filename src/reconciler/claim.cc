#include "reconciler/claim.h"

namespace edl::reconciler {
namespace {

bool IsDeleting(const ReplicaPod& pod) { return pod.deletion_time.has_value(); }
bool IsDeleting(const ReplicaService& service) { return service.deleting; }

template <typename Replica>
void ClaimEach(const TFJob& job, const std::vector<Replica>& observed, Action::Kind adopt,
               Action::Kind release, std::vector<Replica>& own, std::vector<Action>& actions) {
  const std::string label = JobLabels(job.key.name).at(kJobNameLabel);
  const bool may_adopt = !job.deleting && !job.status.conditions.finished();
  for (const Replica& each : observed) {
    const bool matches = each.job == label;
    if (!each.owner.empty()) {
      if (each.owner != job.uid) continue;
      if (matches) {
        own.push_back(each);
      } else if (!IsDeleting(each)) {
        actions.push_back({.kind = release, .object = {}, .name = each.name, .uid = each.uid});
      }
      continue;
    }
    const bool has_its_name =
        each.name == ReplicaName(job.key.name, each.slot.type, each.slot.index);
    if (!matches || !has_its_name || IsDeleting(each) || !may_adopt) continue;
    actions.push_back({.kind = adopt, .object = {}, .name = each.name, .uid = each.uid});
    own.push_back(each);
  }
}

}  // namespace

Claimed Claim(const Observed& observed) {
  Claimed out;
  ClaimEach(observed.job, observed.pods, Action::Kind::kAdoptPod, Action::Kind::kReleasePod,
            out.pods, out.actions);
  ClaimEach(observed.job, observed.services, Action::Kind::kAdoptService,
            Action::Kind::kReleaseService, out.services, out.actions);
  return out;
}

bool IsOfDeletedJob(const ReplicaPod& pod, const TFJob& job) {
  return pod.deletion_time && pod.owner_is_job && pod.owner != job.uid && pod.job == job.key.name;
}

}  // namespace edl::reconciler
