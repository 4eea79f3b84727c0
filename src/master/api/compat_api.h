#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "master/context.h"

namespace edl::master {

// The logic of the compatibility API, for clients of the published packages. They interpret every
// answer without a shard as the end of the data and set no deadline, so a fetch is held until there
// is a shard or the data has ended.
//
// Confined: call it on the master's loop.
class CompatApi {
 public:
  // The limit of stored cluster versions. A new key beyond it removes all others.
  static constexpr size_t kMostVersions = 65536;

  static constexpr const char* kTrainingData = "_EDL_DEFAULT_TRAINING_DATA";
  static constexpr const char* kEvaluationData = "_EDL_DEFAULT_EVALUATION_DATA";

  explicit CompatApi(const Context& context) : context_(context) {}

  // Replies with a shard, or with nullopt at the end of the data.
  void Fetch(uint64_t call, ReplicaRef replica, const std::string& dataset,
             const Reply<std::optional<LeasedShard>>& reply);
  // The connection of a fetch was closed before it was answered, or, with `granted`, before the
  // answer arrived. True: the call waited, and the caller of this method has to end it.
  bool FetchCut(uint64_t call, ReplicaRef replica, std::optional<LeaseId> granted);
  // Ignores unknown tasks: their shards were returned before.
  void ReportTask(const std::string& dataset, int32_t task, const std::string& error);

  void WorkerSync(const std::string& name, ReplicaRef replica, const Reply<bool>& reply);
  void WaitWorkerSync(const std::string& name, const Reply<bool>& reply);
  // `seconds` below 0: without limit.
  void AcquireLock(const std::string& name, ReplicaRef replica, int32_t seconds,
                   const Reply<bool>& reply);

  // Releases a lock of any holder, because the published request does not name the caller.
  void ReleaseLock(const std::string& name) { context_.sync.Release(name, std::nullopt); }
  void Notify(const std::string& name) { context_.sync.Notify(name); }
  Rendezvous& rendezvous() { return context_.rendezvous; }

  // If the replica exits now, it does so because the master did not answer its last fetch.
  bool LeftUnanswered(ReplicaRef replica) const;

  // The replica that a published client belongs to, from the fields that it sends.
  static ReplicaRef ReplicaOf(int64_t worker_id, const std::string& worker_type);

  int32_t ClusterVersion(const std::string& key) const;
  void SetClusterVersion(const std::string& key, int32_t version);

 private:
  // The limit of sessions for replicas that the master did not launch. Users start such clients by
  // hand, so there are few.
  static constexpr size_t kMostUnknown = 1024;

  // The replica's session, opened if necessary. ResourceExhausted: too many unknown replicas.
  Result<Session*> SessionOf(ReplicaRef replica);

  const Context context_;
  std::map<std::string, int32_t> versions_;
  size_t unknown_ = 0;  // sessions that this process opened for unknown replicas
};

}  // namespace edl::master
