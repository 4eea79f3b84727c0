#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "master/context.h"

namespace edl::master {

// The logic behind the published wire. Its clients read every answer that is not a shard as the end
// of data and set no deadline, so a fetch is held until there is a shard or the data has ended.
//
// Confined: call it on the master's loop.
class CompatApi {
 public:
  // Limit of stored cluster versions. A new key beyond it removes all others.
  static constexpr size_t kMostVersions = 65536;

  static constexpr const char* kTrainingData = "_EDL_DEFAULT_TRAINING_DATA";
  static constexpr const char* kEvaluationData = "_EDL_DEFAULT_EVALUATION_DATA";

  explicit CompatApi(const Context& context) : context_(context) {}

  // The shard, or nullopt for the end of data.
  void Fetch(uint64_t call, ReplicaRef replica, const std::string& dataset,
             const Reply<std::optional<LeasedShard>>& reply);
  // The connection of a fetch is gone: while it waited (true: that call is still to be ended), or
  // with `granted` on its way.
  bool FetchCut(uint64_t call, ReplicaRef replica, std::optional<LeaseId> granted);
  // Never fails: a task that the master does not know was reconciled already.
  void ReportTask(const std::string& dataset, int32_t task, const std::string& error);

  void WorkerSync(const std::string& name, ReplicaRef replica, const Reply<bool>& reply);
  void WaitWorkerSync(const std::string& name, const Reply<bool>& reply);
  // `seconds` below 0: without limit.
  void AcquireLock(const std::string& name, ReplicaRef replica, int32_t seconds,
                   const Reply<bool>& reply);

  // Whoever frees a lock there may not be its holder: the published wire does not say who calls.
  void ReleaseLock(const std::string& name) { context_.sync.Release(name, std::nullopt); }
  void Notify(const std::string& name) { context_.sync.Notify(name); }
  // Groups of processes that average gradients among themselves.
  Rendezvous& rendezvous() { return context_.rendezvous; }

  // A replica that exits now left because the master did not answer it, not by its own will.
  bool LeftUnanswered(ReplicaRef replica) const;

  // Which replica a published client is, by what it sends.
  static ReplicaRef ReplicaOf(int64_t worker_id, const std::string& worker_type);

  int32_t ClusterVersion(const std::string& key) const;
  void SetClusterVersion(const std::string& key, int32_t version);

 private:
  // Callers that claim to be replicas which the master did not launch: somebody started them by
  // hand, and they are few.
  static constexpr size_t kMostUnknown = 1024;

  // ResourceExhausted: too many unknown ones.
  Result<Session*> SessionOf(ReplicaRef replica);

  const Context context_;
  std::map<std::string, int32_t> versions_;
  size_t unknown_ = 0;  // sessions opened for unknown replicas in this master life
};

}  // namespace edl::master
