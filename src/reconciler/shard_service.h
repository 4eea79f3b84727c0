#pragma once

#include <functional>
#include <optional>
#include <string>

#include "reconciler/replica_pod.h"
#include "reconciler/tfjob.h"
#include <nlohmann/json.hpp>

#include "kube/object.h"

namespace edl::reconciler {

// The data-shard service of a job with the annotation kDataShards: a master of ours in a pod of its
// own, which leases shards to the replicas and launches nothing. docs/adr/0031.

// The name of its pod and its service. It is shorter than the name of a chief, master or worker, so
// it is not too long for a job that Validate accepts.
std::string ShardServiceName(const std::string& job);

// The name of its container.
inline constexpr const char* kShardContainer = "data-shards";

// The objects of the service. They have no label of a role, so they are not replicas of the job.
kube::Object MakeShardPod(const TFJob& job, const std::string& image);
kube::Object MakeShardNetworkService(const TFJob& job);  // its Service
kube::Object MakeShardSecret(const TFJob& job, const std::string& token);

// Adds the variables with which elasticai_api finds the service to the container that trains.
void AddShardVariables(const TFJob& job, ReplicaType type, int index, nlohmann::json& pod_spec);

// What the settings of the operator say about the service.
struct ShardSettings {
  std::string image;
  std::function<std::string()> new_token;  // returns a random text
};

// The service as it is in the cluster.
struct ShardService {
  std::optional<ReplicaPod> pod;  // its slot means nothing
  // If the pod is being deleted: how long it may still run.
  std::chrono::seconds deletion_grace{0};
  bool has_service = false;  // its Service exists
  std::string failure;       // why its master ended the job; empty: it did not
  std::string progress;      // "40 %"; empty: unknown

  bool operator==(const ShardService&) const = default;
};

// Reads the pod with the name of the service, and the end of its log.
ShardService ReadShardService(const kube::Object& pod, const std::string& log);

}  // namespace edl::reconciler
