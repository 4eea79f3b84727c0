#include "backend/kubernetes/pod_groups.h"

#include "backend/kubernetes/pod_maker.h"
#include "job/model_command.h"
#include "job/names.h"

namespace edl::backend::kubernetes {
namespace {

using job::Role;

job::ReplicaSpec ReplicaOf(const job::JobSpec& job, Role role, int index) {
  return {.name = job.ReplicaName(role, index),
          .role = role,
          .index = index,
          .id = index,
          .command = job::WorkerCommand(job),
          .env = job.envs,
          .volumes = job.volumes};
}

kube::OwnerReference MasterOf(const job::JobSpec& job) {
  return {.api_version = "v1", .kind = "Pod", .name = job::MasterName(job.job_name)};
}

kube::Object PodOf(const job::JobSpec& job, const PodMaker& maker, Role role, int index) {
  return maker.ReplicaPod(ReplicaOf(job, role, index), MasterOf(job));
}

}  // namespace

std::vector<PodGroup> GroupPods(const Submission& submission, const std::string& ns) {
  const PodMaker maker(submission.job, submission.options, ns);
  std::vector<PodGroup> groups = {{Role::kMaster, 1, maker.MasterPod()}};
  for (const Role role : {Role::kPs, Role::kChief, Role::kEvaluator, Role::kWorker}) {
    const int count = submission.job.CountOf(role);
    if (count == 0) continue;
    const auto class_of = [&](int index) {
      return submission.options.PriorityClassOf(role, index, count);
    };
    int first = 0;
    for (int index = 0; index < count; ++index) first += class_of(index) == class_of(0) ? 1 : 0;
    groups.push_back({role, first, PodOf(submission.job, maker, role, 0)});
    // With a fraction of high-priority workers, the first slot has one class and the middle slot
    // the other.
    if (first == count) continue;
    groups.push_back({role, count - first, PodOf(submission.job, maker, role, count / 2)});
  }
  return groups;
}

Templates MakeTemplates(const Submission& submission, const std::string& ns) {
  const job::JobSpec& job = submission.job;
  const PodMaker maker(job, submission.options, ns);
  Templates out;
  out.pods[Role::kMaster] = maker.MasterPod().fields();
  for (const Role role : job::kReplicaRoles) {
    out.pods[role] = PodOf(job, maker, role, 0).fields();
  }
  out.service = maker.SlotService(ReplicaOf(job, Role::kPs, 0), MasterOf(job)).fields();
  return out;
}

}  // namespace edl::backend::kubernetes
