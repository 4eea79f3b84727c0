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

// The service account that elasticdl/manifests/elasticdl-rbac.yaml creates for masters.
inline constexpr std::string_view kMasterAccount = "elasticdl-master";

// One variable of --env_secret: NAME=secret/key.
struct SecretVariable {
  std::string name;
  std::string secret;
  std::string key;
  bool operator==(const SecretVariable&) const = default;
};
Result<std::vector<SecretVariable>> ParseSecretVariables(std::string_view text);

// restartPolicy of the pods of replicas.
enum class PodRestartPolicy { kAlways, kOnFailure, kNever };
// "Always", "OnFailure", "Never".
std::string_view NameOf(PodRestartPolicy policy);

// How the pods of a job are created on Kubernetes: the flags that are not part of the job itself.
struct ClusterOptions {
  std::map<job::Role, std::string> images;  // for every role
  std::string image_pull_policy;
  PodRestartPolicy restart_policy = PodRestartPolicy::kNever;
  std::map<job::Role, std::string> priority_classes;  // from the flags; "" if not given
  // --worker_pod_priority=0.5: the fraction of workers with class "high"; the others have "low".
  std::optional<double> high_fraction;
  std::vector<std::string> pull_secrets;
  // The service account of the master. "": kMasterAccount if the namespace has it, otherwise the
  // default account of the namespace.
  std::string service_account;
  std::vector<SecretVariable> secret_variables;
  ClusterSpec cluster_spec;

  // The priority class of slot `index` in a role with `count` slots; "" if it has none. With a
  // fraction, the slots with class "high" are taken from both ends, as in the original ElasticDL.
  // Master and parameter servers have the highest class of the job unless a flag sets theirs,
  // because a worker must not preempt the master that it works for.
  std::string PriorityClassOf(job::Role role, int index, int count) const;
};

// InvalidArgument: the message names the flag, the value and the remedy.
Result<ClusterOptions> MakeClusterOptions(const FlagValues& flags);

}  // namespace edl::backend
