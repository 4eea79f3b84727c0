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

// One thing that somebody must be allowed to do in the job's namespace.
struct Act {
  std::string_view verb;
  kube::Resource resource;
  std::string_view subresource = {};
};

// What a master does, which elasticdl/manifests/elasticdl-rbac.yaml allows.
std::span<const Act> ActsOfMaster();

// Looks for what a job needs of its cluster before the job is submitted, by reading and asking
// only. What pods refer to is read off the pods that would be made.
//
// Confined; used once.
class Preflight {
 public:
  // All outlive this.
  Preflight(kube::Client& client, const std::string& ns, const Submission& submission);

  // One finding a thing, in the order in which they matter. Ends early where the rest would be
  // about nothing: the cluster does not answer, or has no such namespace.
  std::vector<Finding> Run(Depth depth);

 private:
  bool CheckServer();
  bool CheckNamespace();
  void CheckCaller(Depth depth);
  void CheckAccount(Depth depth);
  void CheckClasses();
  // No worker may preempt the master or a parameter server that it works for.
  void ComparePriorities();
  // Asks the server whether it would take the pods and services: its admission looks at them.
  void CheckAdmission();
  void CheckAdmission(const std::string& what, const kube::Resource& resource,
                      const kube::Object& object);
  void CheckClaims(Depth depth);
  void CheckClaim(const kube::Object& claim);
  void CheckSecrets();
  void CheckSecret(const std::string& name, const std::set<std::string>& keys, bool pulls);
  void CheckImages();
  void CheckQuotas();
  void CheckCapacity();
  // Each pod for itself, on a node that runs nothing else.
  bool FitAlone(const ClusterCapacity& capacity);
  void FitTogether(ClusterCapacity& capacity);

  // Which of `acts` the caller may not do. A failure is that of asking.
  Result<std::vector<std::string>> Denied(std::span<const Act> acts,
                                          const kube::ObjectKey* account);

  void AddOk(std::string what, std::string detail);
  Finding& AddMissing(std::string what, std::string detail, std::string fix);
  void AddUnknown(std::string what, std::string detail, std::string fix = "");
  // Adds a finding for an object that could not be read: it does not exist, or this is unknown.
  void AddUnread(const std::string& what, const Status& why, const std::string& fix, bool blocks);

  kube::Client& client_;
  const std::string& ns_;
  const std::string job_secret_;  // that the job brings along
  const bool has_claims_;
  const std::vector<PodGroup> groups_;
  const std::vector<kube::Object> services_;
  std::map<std::string, int64_t> priorities_;  // of the classes that are there
  Result<kube::ObjectList> nodes_;
  std::vector<Finding> findings_;
};

}  // namespace edl::backend::kubernetes
