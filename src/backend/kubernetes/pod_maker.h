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

// Labels with which users and services select pods.
inline constexpr std::string_view kAppLabel = "app";
inline constexpr std::string_view kApp = "elasticdl";
inline constexpr std::string_view kJobLabel = "elasticdl-job-name";
inline constexpr std::string_view kRoleLabel = "elasticdl-replica-type";
inline constexpr std::string_view kIndexLabel = "elasticdl-replica-index";
inline constexpr std::string_view kIdLabel = "elasticdl-replica-id";

inline constexpr int kMasterPort = 50001;
inline constexpr int kMasterHttpPort = 50002;
inline constexpr int kPsHttpPort = 50003;
inline constexpr int kPsPort = 2222;
inline constexpr int kReplicaPort = 3333;  // chief, workers and evaluator

// Where the job's secret is mounted: for replicas only the token, for the master all of it.
inline constexpr std::string_view kJobMount = "/var/run/elasticdl/job";
inline constexpr std::string_view kTokenKey = "token";
inline constexpr std::string_view kSpecKey = "spec.json";
// Where the master stores its ledger.
inline constexpr std::string_view kStateMount = "/var/lib/elasticdl";

// Whether the job has a persistent volume claim, so that its data outlives its pods.
bool HasClaim(const job::JobSpec& job);

// Creates the Kubernetes objects of one job. Immutable, thread-safe.
class PodMaker {
 public:
  PodMaker(job::JobSpec job, backend::ClusterOptions options, std::string ns);

  const std::string& ns() const { return ns_; }
  // A label selector for every pod of the job, including the master.
  std::string Selector() const;
  // Selects the pods of replicas that have not terminated.
  kube::Selector RunningReplicas() const;
  // The address of a slot: "<service>.<namespace>.svc:<port>".
  std::string AddressOf(job::Role role, int index) const;
  std::string MasterAddress() const;

  // The pod of a replica, owned by `master`: deleting the pod of the master ends the job.
  kube::Object ReplicaPod(const job::ReplicaSpec& spec, const kube::OwnerReference& master) const;
  // A service for a slot, which selects the replica that currently fills the slot.
  kube::Object SlotService(const job::ReplicaSpec& spec, const kube::OwnerReference& master) const;
  // Whether other processes connect to the replicas of this role.
  bool HasService(job::Role role) const;

  // The pod of the master. Its ledger is on the job's first claim, if it has one.
  kube::Object MasterPod() const;
  // The service of the master; without an owner if its pod does not exist yet.
  kube::Object MasterService(const std::optional<kube::OwnerReference>& master) const;
  // The secret of the job: the job file for the master, the token and secret variables for
  // replicas.
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
