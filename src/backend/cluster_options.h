#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cluster_spec.h"
#include "base/flags.h"
#include "base/status.h"
#include "job/role.h"

namespace edl::backend {

// What elasticdl/manifests/elasticdl-rbac.yaml makes for masters.
inline constexpr std::string_view kMasterAccount = "elasticdl-master";

// One variable of --env_secret: NAME=secret/key.
struct SecretVariable {
  std::string name;
  std::string secret;
  std::string key;
  bool operator==(const SecretVariable&) const = default;
};
Result<std::vector<SecretVariable>> ParseSecretVariables(std::string_view text);

// How a job's pods are made on Kubernetes: what flags say beyond the job itself.
struct ClusterOptions {
  std::map<job::Role, std::string> images;  // of every role
  std::string image_pull_policy;
  std::string restart_policy;
  std::map<job::Role, std::string> priority_classes;  // as given, "" where none was
  // --worker_pod_priority=0.5: the part of the workers with class "high"; the others have "low".
  std::optional<double> high_fraction;
  std::vector<std::string> pull_secrets;
  // The master's; "": kMasterAccount where the namespace has it, else the namespace's default.
  std::string service_account;
  std::vector<SecretVariable> secret_variables;
  ClusterSpec cluster_spec;

  // The class of the replica in slot `index` of a role with `count` of them; "": none. With a
  // fraction the high ones are taken from both ends, as the original does. Master and parameter
  // servers have the job's highest class unless a flag says otherwise: a worker must not preempt
  // the master that it works for.
  std::string PriorityClassOf(job::Role role, int index, int count) const;
};

// InvalidArgument: one clause that names the flag, the value and the way out.
Result<ClusterOptions> MakeClusterOptions(const FlagValues& flags);

}  // namespace edl::backend
