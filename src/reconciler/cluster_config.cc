#include "reconciler/cluster_config.h"

#include <optional>

#include <fmt/format.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::ordered_json;

std::string AddressOf(const TFJob& job, ReplicaType type, int index, const std::string& domain) {
  return fmt::format("{}.{}.svc{}{}:{}", ReplicaName(job.key.name, type, index), job.key.ns,
                     domain.empty() ? "" : ".", domain, job.replicas.at(type).port);
}

ordered_json AllAddresses(const TFJob& job, ReplicaType type, const std::string& domain) {
  ordered_json out = ordered_json::array();
  for (int i = 0; i < job.replicas.at(type).replicas; ++i) {
    out.push_back(AddressOf(job, type, i, domain));
  }
  return out;
}

ordered_json TaskOf(ReplicaType type, int index) {
  return {{"type", LowerNameOf(type)}, {"index", index}};
}

// With dynamic workers, a replica knows itself and the parameter servers only, so that the number
// of workers can change.
ordered_json SparseConfig(const TFJob& job, ReplicaType type, int index,
                          const std::string& domain) {
  ordered_json workers = ordered_json::object();
  ordered_json servers = ordered_json::array();
  if (type == ReplicaType::kWorker) {
    workers[fmt::format("{}", index)] = AddressOf(job, type, index, domain);
    servers = job.has(ReplicaType::kPs) ? AllAddresses(job, ReplicaType::kPs, domain)
                                        : ordered_json(nullptr);
  } else if (type == ReplicaType::kPs) {
    servers.push_back(AddressOf(job, type, index, domain));
  }
  ordered_json out;
  out["cluster"]["worker"] = std::move(workers);
  out["cluster"]["ps"] = std::move(servers);
  out["task"] = TaskOf(type, index);
  return out;
}

}  // namespace

std::string ClusterConfig(const TFJob& job, ReplicaType type, int index,
                          const std::string& domain) {
  if (!job.distributed()) return "";
  if (job.dynamic_workers) return Dump(SparseConfig(job, type, index, domain));
  ordered_json out;
  out["cluster"] = ordered_json::object();
  // kReplicaTypes is in alphabetical order, as the keys of upstream's TF_CONFIG.
  for (const ReplicaType each : kReplicaTypes) {
    if (!job.has(each)) continue;
    if (each == ReplicaType::kEvaluator && !job.Option(kEvaluatorInCluster, true)) continue;
    out["cluster"][LowerNameOf(each)] = AllAddresses(job, each, domain);
  }
  out["task"] = TaskOf(type, index);
  out["environment"] = "cloud";
  return Dump(out);
}

size_t LongestClusterConfig(const TFJob& job, const std::string& domain) {
  const auto length_of_task = [&](ReplicaType type) {
    return Dump(TaskOf(type, job.replicas.at(type).replicas - 1)).size();
  };
  std::optional<ReplicaType> longest;
  for (const auto& [type, spec] : job.replicas) {
    if (spec.replicas == 0) continue;
    // The others know themselves at most.
    if (job.dynamic_workers && type != ReplicaType::kWorker) continue;
    if (!longest || length_of_task(type) > length_of_task(*longest)) longest = type;
  }
  if (!longest) return 0;
  return ClusterConfig(job, *longest, job.replicas.at(*longest).replicas - 1, domain).size();
}

}  // namespace edl::reconciler
