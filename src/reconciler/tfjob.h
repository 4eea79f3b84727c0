#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reconciler/job_status.h"
#include "reconciler/replica_type.h"
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/status.h"
#include "kube/object.h"
#include "kube/resource.h"

namespace edl::reconciler {

inline constexpr kube::Resource kTFJobs{"kubeflow.org", "v1", "TFJob", "tfjobs"};

// The container that trains, whose end decides about its replica.
inline constexpr std::string_view kContainerName = "tensorflow";
inline constexpr std::string_view kPortName = "tfjob-port";
inline constexpr int64_t kDefaultPort = 2222;
// The value of `managedBy` that selects this operator.
inline constexpr std::string_view kManagedByUs = "kubeflow.org/training-operator";

// Annotations of a TFJob that this operator adds to the API.
inline constexpr const char* kEvaluatorInCluster = "tfjob.elasticdl.org/evaluator-in-cluster";
inline constexpr const char* kWaitForEvaluator = "tfjob.elasticdl.org/wait-for-evaluator";
inline constexpr const char* kMinWorkers = "tfjob.elasticdl.org/min-workers";
inline constexpr const char* kMaxWorkers = "tfjob.elasticdl.org/max-workers";
inline constexpr const char* kDataShards = "tfjob.elasticdl.org/data-shards";
inline constexpr const char* kDataShardsClaim = "tfjob.elasticdl.org/data-shards-claim";

// What happens when the container of a replica ends.
enum class RestartPolicy {
  kNever,
  kOnFailure,
  kAlways,
  kExitCode,  // codes from 128 (ended by a signal): replaced; below: the job fails
};

// Which pods are deleted when a job has ended.
enum class CleanPodPolicy { kNone, kRunning, kAll };

// Whether a container that exits with this code is run again under RestartPolicy::kExitCode.
inline bool IsRetryable(int exit_code) { return exit_code >= 128; }

// The replicas of one role, with defaults filled in.
struct ReplicaSpec {
  int replicas = 1;
  RestartPolicy restart = RestartPolicy::kNever;
  nlohmann::json pod_template;  // with a port "tfjob-port" in the container that trains
  int64_t port = kDefaultPort;  // of "tfjob-port"
};

// The policy for gang scheduling.
struct SchedulingPolicy {
  std::optional<int64_t> min_available;
  std::string queue;
  nlohmann::json min_resources;  // null: not given
  std::string priority_class;
  std::optional<int64_t> timeout_seconds;
};

// A TFJob with defaults filled in.
//
// A value.
struct TFJob {
  kube::ObjectKey key;
  std::string uid;
  bool deleting = false;
  kube::Object::Labels annotations;

  std::map<ReplicaType, ReplicaSpec> replicas;
  bool all_workers_must_succeed = false;  // successPolicy: AllWorkers, or data shards
  bool dynamic_workers = false;
  CleanPodPolicy clean = CleanPodPolicy::kNone;
  std::optional<std::chrono::seconds> ttl;
  std::optional<std::chrono::seconds> deadline;
  std::optional<int64_t> backoff_limit;
  bool suspended = false;
  SchedulingPolicy scheduling;

  JobStatus status;

  bool has(ReplicaType type) const { return replicas.contains(type); }
  // The role whose end decides, with at least one replica; nullopt: the workers decide.
  std::optional<ReplicaType> chief() const;
  int64_t total_replicas() const;
  // Whether the replicas need each other's addresses.
  bool distributed() const { return total_replicas() != 1; }
  // Whether the operator runs a data-shard service for the replicas.
  bool has_data_shards() const { return Option(kDataShards, false); }
  // An annotation that is "true" or "false".
  bool Option(const char* annotation, bool by_default) const;
  // The least number of dynamic workers. nullopt: it is not given, or not valid.
  std::optional<int> min_workers() const;
  // A sentence for each annotation of ours whose value is not valid. The API server cannot check
  // annotations.
  std::vector<std::string> AnnotationMistakes() const;
};

// Whether this operator is responsible for the job: `managedBy` is missing or names it.
bool ManagedByUs(const kube::Object& object);

// Reads a TFJob and fills in defaults. Errors (InvalidArgument) are those of Validate, and values
// that no operator could use.
Result<TFJob> ParseTFJob(const kube::Object& object);

// What the end of a job that ParseTFJob rejects needs: its name, its policy and its status, but no
// replicas.
TFJob ParseRejected(const kube::Object& object);

// Checks what upstream's webhook checks, with the same messages, and what no operator could run.
// The API server checks all of that when a job is created, and more; this function is for jobs that
// were stored before.
std::vector<std::string> Validate(const kube::Object& object);

// The container of a pod spec that trains: the one named "tensorflow". Returns null if there is
// none.
const nlohmann::json* TrainingContainer(const nlohmann::json& pod_spec);

// The name of a replica's pod and service.
std::string ReplicaName(const std::string& job, ReplicaType type, int index);

}  // namespace edl::reconciler
