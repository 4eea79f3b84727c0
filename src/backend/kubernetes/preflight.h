#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "backend/kubernetes/pod_groups.h"
#include "kube/call_options.h"
#include "kube/client.h"

namespace edl::backend::kubernetes {

class ClusterCapacity;

// An action that needs a permission in the namespace of the job.
struct Act {
  std::string_view verb;
  kube::Resource resource;
  std::string_view subresource = {};
};

// The actions of a master, which elasticdl/manifests/elasticdl-rbac.yaml allows.
std::span<const Act> ActsOfMaster();

// Checks what a job needs from its cluster before it is submitted. It only reads and sends reviews
// and dry runs. It inspects the pods that a submission would create.
//
// Confined; use it once.
class Preflight {
 public:
  // The arguments outlive this.
  Preflight(kube::Client& client, const std::string& ns, const Submission& submission);

  // Returns one finding per check, in order of importance. Stops early if the cluster does not
  // answer or the namespace does not exist.
  std::vector<Finding> Run(Depth depth);

 private:
  enum class SecretUse { kPull, kRead };
  enum class Severity { kWarning, kBlocker };

  bool CheckServer();
  bool CheckNamespace();
  void CheckCaller(Depth depth);
  void CheckAccount(Depth depth);
  void CheckClasses();
  // Checks that no worker can preempt the master or a parameter server that it works for.
  void ComparePriorities();
  // Creates the pods and services as a dry run, which includes admission control.
  void CheckAdmission();
  void CheckAdmission(const std::string& what, const kube::Resource& resource,
                      const kube::Object& object);
  void CheckClaims(Depth depth);
  void CheckClaim(const kube::Object& claim);
  void CheckSecrets();
  void CheckSecret(const std::string& name, const std::set<std::string>& keys, SecretUse use);
  void CheckImages();
  void CheckQuotas();
  void CheckCapacity();
  // Whether each pod fits on an otherwise empty node.
  bool FitAlone(const ClusterCapacity& capacity);
  void FitTogether(ClusterCapacity& capacity);

  // Returns those `acts` that the caller, or `account` if it is not null, may not do. Fails if the
  // reviews fail.
  Result<std::vector<std::string>> Denied(std::span<const Act> acts,
                                          const kube::ObjectKey* account);

  void AddOk(std::string what, std::string detail);
  Finding& AddMissing(std::string what, std::string detail, std::string fix);
  void AddUnknown(std::string what, std::string detail, std::string fix = "");
  // Adds a finding for an object that could not be read: it does not exist, or that is unknown.
  void AddUnread(const std::string& what, const Status& why, const std::string& fix,
                 Severity severity);

  kube::Client& client_;
  const std::string& ns_;
  const std::string job_secret_;  // created with the job
  const bool has_claims_;
  const std::vector<PodGroup> groups_;
  const std::vector<kube::Object> services_;
  std::map<std::string, int64_t> priorities_;  // of the existing classes
  Result<kube::ObjectList> nodes_;
  std::vector<Finding> findings_;
};

}  // namespace edl::backend::kubernetes
