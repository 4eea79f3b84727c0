#pragma once

#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "job/role.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// Pods of a job that are alike but for what tells one from the other: those of one role with one
// priority class.
struct PodGroup {
  job::Role role = job::Role::kMaster;
  int count = 0;
  kube::Object pod;  // of one of them
};

// All that the job has when all of it runs: the master, what workers need, the workers last.
std::vector<PodGroup> GroupPods(const Submission& submission, const std::string& ns);

// The first pod of each role, whether the job has it now or may get it by scaling, and a service.
Templates MakeTemplates(const Submission& submission, const std::string& ns);

}  // namespace edl::backend::kubernetes
