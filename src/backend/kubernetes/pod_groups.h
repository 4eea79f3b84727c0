#pragma once

#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "job/role.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// Pods of a job that differ only in their identity: those of one role with one priority class.
struct PodGroup {
  job::Role role = job::Role::kMaster;
  int count = 0;
  kube::Object pod;  // an example
};

// All pods of the running job: the master first, the workers last.
std::vector<PodGroup> GroupPods(const Submission& submission, const std::string& ns);

// The first pod of each role, including roles that the job does not have, and a service.
Templates MakeTemplates(const Submission& submission, const std::string& ns);

}  // namespace edl::backend::kubernetes
