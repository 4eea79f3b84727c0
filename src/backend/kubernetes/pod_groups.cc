#include "backend/kubernetes/pod_groups.h"

#include "backend/kubernetes/pod_maker.h"
#include "job/names.h"

namespace edl::backend::kubernetes {
namespace {

using job::Role;

kube::Object PodOf(const Submission& submission, const PodMaker& maker, Role role, int index) {
  const job::JobSpec& job = submission.job;
  const kube::OwnerReference master{
      .api_version = "v1", .kind = "Pod", .name = job::MasterName(job.job_name)};
  return maker.ReplicaPod({.name = job::ReplicaName(job.job_name, role, index),
                           .role = role,
                           .index = index,
                           .id = index,
                           .command = job::ShellCommand(job.job_command),
                           .env = job.envs,
                           .volumes = job.volumes},
                          master);
}

}  // namespace

std::vector<PodGroup> GroupPods(const Submission& submission, const std::string& name_space) {
  const PodMaker maker(submission.job, submission.options, name_space);
  std::vector<PodGroup> groups = {{Role::kMaster, 1, maker.MasterPod()}};
  for (const Role role : {Role::kPs, Role::kChief, Role::kEvaluator, Role::kWorker}) {
    const int count = submission.job.CountOf(role);
    if (count == 0) continue;
    const auto class_of = [&](int index) {
      return submission.options.PriorityClassOf(role, index, count);
    };
    int first = 0;
    for (int index = 0; index < count; ++index) first += class_of(index) == class_of(0) ? 1 : 0;
    groups.push_back({role, first, PodOf(submission, maker, role, 0)});
    // With classes by a fraction, the first slot has one and the slot in the middle the other.
    if (first == count) continue;
    groups.push_back({role, count - first, PodOf(submission, maker, role, count / 2)});
  }
  return groups;
}

}  // namespace edl::backend::kubernetes
