#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backend/cluster_options.h"
#include "job/job_spec.h"
#include "job/replica.h"
#include "job/role.h"
#include "kube/call_options.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// Labels that users select by, and services too.
inline constexpr std::string_view kAppLabel = "app";
inline constexpr std::string_view kApp = "elasticdl";
inline constexpr std::string_view kJobLabel = "elasticdl-job-name";
inline constexpr std::string_view kRoleLabel = "elasticdl-replica-type";
inline constexpr std::string_view kIndexLabel = "elasticdl-replica-index";
inline constexpr std::string_view kIdLabel = "elasticdl-replica-id";

inline constexpr int kMasterPort = 50001;
inline constexpr int kPsPort = 2222;
inline constexpr int kReplicaPort = 3333;  // of chief, workers and evaluator

// Where pods see the job's secret: replicas its token, the master all of it.
inline constexpr std::string_view kJobMount = "/var/run/elasticdl/job";
inline constexpr std::string_view kTokenKey = "token";
inline constexpr std::string_view kSpecKey = "spec.json";
// Where the master keeps its ledger.
inline constexpr std::string_view kStateMount = "/var/lib/elasticdl";

// Whether a volume of the job is a claim, so that what its pods write there outlives them.
bool HasClaim(const job::JobSpec& job);

// Makes the objects of one job. Immutable, thread-safe.
class PodMaker {
 public:
  PodMaker(job::JobSpec job, backend::ClusterOptions options, std::string ns);

  const std::string& ns() const { return ns_; }
  // Selects every pod of the job, the master's too.
  std::string Selector() const;
  // Selects every replica's pod that has not ended.
  kube::Selector RunningReplicas() const;
  // "<service>.<namespace>.svc:<port>" of a slot.
  std::string AddressOf(job::Role role, int index) const;
  std::string MasterAddress() const;

  // The pod of a replica, owned by `master`: deleting the master's pod ends the job.
  kube::Object ReplicaPod(const job::ReplicaSpec& spec, const kube::OwnerReference& master) const;
  // Points at the replica that fills the slot.
  kube::Object SlotService(const job::ReplicaSpec& spec, const kube::OwnerReference& master) const;
  // Whether the replicas of this role are reached by others.
  bool HasService(job::Role role) const;

  // The master's pod. Its ledger lies on the job's first claim, if it has
  // one.
  kube::Object MasterPod() const;
  // Without an owner where the pod is not there yet.
  kube::Object MasterService(const std::optional<kube::OwnerReference>& master) const;
  // What the master needs to know, and what replicas show it.
  kube::Object JobSecret(const std::string& spec_json, const std::string& token) const;

 private:
  nlohmann::json Metadata(const std::string& name, job::Role role, int index) const;
  nlohmann::json PodSpec(const std::string& name, job::Role role, int index) const;
  nlohmann::json Service(const std::string& name, job::Role role, int index, int port,
                         const nlohmann::json& selector,
                         const std::optional<kube::OwnerReference>& owner) const;

  const job::JobSpec job_;
  const backend::ClusterOptions options_;
  const std::string ns_;
};

}  // namespace edl::backend::kubernetes
