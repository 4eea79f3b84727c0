#include "master/api/compat_api.h"

#include <chrono>
#include <utility>

namespace edl::master {

ReplicaRef CompatApi::ReplicaOf(int64_t worker_id, const std::string& worker_type) {
  const auto decoded = job::FromWorkerId(worker_id);
  if (!decoded) return {job::Role::kWorker, worker_id};
  // A client that a user started by hand may send a small id and its type.
  if (decoded->role == job::Role::kWorker) {
    const auto role = job::RoleFromName(worker_type);
    if (role && *role != job::Role::kMaster) return {*role, decoded->id};
  }
  return {decoded->role, decoded->id};
}

Result<Session*> CompatApi::SessionOf(ReplicaRef replica) {
  Session* session = context_.sessions.FindCompat(replica);
  if (session == nullptr) {
    if (context_.keeper.Find(replica) == nullptr && ++unknown_ > kMostUnknown) {
      return ResourceExhausted(
          "{} {} is not a replica of this job, and the limit of {} such callers is reached",
          job::NameOf(replica.role), replica.id, kMostUnknown);
    }
    session = &context_.sessions.OpenCompat(replica, context_.now);
  }
  session->heard_at = context_.now;
  context_.keeper.troubled().Clear(replica);
  return session;
}

void CompatApi::Fetch(uint64_t call, ReplicaRef replica, const std::string& dataset,
                      const Reply<std::optional<LeasedShard>>& reply) {
  const Result<Session*> found = SessionOf(replica);
  if (!found.ok()) {
    context_.outbox.Send<std::optional<LeasedShard>>(reply, found.status());
    return;
  }
  Session& session = **found;
  session.fetch_cut.reset();
  if (Status leases = CheckLeasesShards(context_.spec); !leases.ok()) {
    session.fetch_answered = true;
    context_.outbox.Send<std::optional<LeasedShard>>(reply, std::move(leases));
    return;
  }
  if (replica.role == job::Role::kPs) {
    session.fetch_answered = true;
    context_.keeper.NotePsAskedForData(replica);
    context_.outbox.Send<std::optional<LeasedShard>>(reply, std::optional<LeasedShard>());
    return;
  }
  context_.dispatcher.RequestShards(
      Waiter{.call = call,
             .session = session.incarnation,
             .dataset = dataset,
             .reply =
                 [this, reply, incarnation = session.incarnation](LeaseAnswer answer,
                                                                  std::vector<LeasedShard> shards) {
                   if (Session* session = context_.sessions.Find(incarnation)) {
                     session->fetch_answered = true;
                   }
                   std::optional<LeasedShard> shard;
                   if (!shards.empty()) shard = std::move(shards.front());
                   if (answer == LeaseAnswer::kShards || answer == LeaseAnswer::kFinished) {
                     context_.outbox.Send<std::optional<LeasedShard>>(reply, std::move(shard));
                   } else {
                     context_.outbox.Send<std::optional<LeasedShard>>(
                         reply, Unavailable("the master has closed the session of the caller"));
                   }
                 }},
      IfUnknown::kHold, context_.now);
}

bool CompatApi::FetchCut(uint64_t call, ReplicaRef replica, std::optional<LeaseId> granted) {
  const bool waited = context_.dispatcher.DropWaiter(call, context_.now);
  if (Session* session = context_.sessions.FindCompat(replica); session != nullptr) {
    if (waited || granted) session->fetch_cut = context_.now;
  }
  if (granted) context_.dispatcher.GiveBack(*granted, context_.now);
  return waited;
}

void CompatApi::ReportTask(const std::string& dataset, int32_t task, const std::string& error) {
  context_.dispatcher.ReportTask(dataset, task,
                                 error.empty() ? ShardOutcome::kDone : ShardOutcome::kFailed, error,
                                 context_.now);
}

void CompatApi::WorkerSync(const std::string& name, ReplicaRef replica, const Reply<bool>& reply) {
  // These clients poll once a second, so the call is not held.
  context_.sync.Arrive(name, replica,
                       context_.sync.HasBarrier(name) ? std::vector<ReplicaRef>()
                                                      : context_.keeper.Running(replica.role),
                       context_.now,
                       [this, reply](bool ready) { context_.outbox.Send<bool>(reply, ready); });
  context_.sync.Tick(context_.now);
}

void CompatApi::WaitWorkerSync(const std::string& name, const Reply<bool>& reply) {
  context_.sync.AwaitEvent(name, context_.now,
                           [this, reply](bool ready) { context_.outbox.Send<bool>(reply, ready); });
  context_.sync.Tick(context_.now);
}

void CompatApi::AcquireLock(const std::string& name, ReplicaRef replica, int32_t seconds,
                            const Reply<bool>& reply) {
  std::optional<Time> until;
  if (seconds >= 0) until = context_.now + std::chrono::seconds(seconds);
  const Result<Session*> session = SessionOf(replica);
  if (!session.ok()) {
    context_.outbox.Send<bool>(reply, session.status());
    return;
  }
  context_.sync.Acquire(name, (*session)->incarnation, until, [this, reply](bool acquired) {
    context_.outbox.Send<bool>(reply, acquired);
  });
}

bool CompatApi::LeftUnanswered(ReplicaRef ref) const {
  const ReplicaKeeper::Replica* replica = context_.keeper.Find(ref);
  const bool trains = ref.role == job::Role::kWorker || ref.role == job::Role::kChief;
  if (!trains || replica == nullptr || replica->row.joined || !context_.dispatcher.AnythingLeft()) {
    return false;
  }
  const Session* session = context_.sessions.FindCompat(ref);
  // Its fetch was lost with the last process of the master (a first fetch leaves no trace in the
  // ledger), and the replica did not fetch again.
  if (session == nullptr) return replica->from_ledger;
  if (session->ended) return false;
  if (session->from_ledger && !session->fetch_answered) return true;
  // The replica ran on after its fetch was cut. A process that exits normally disconnects at its
  // end.
  constexpr std::chrono::seconds kLivedOn{2};
  return session->fetch_cut && context_.now - *session->fetch_cut >= kLivedOn;
}

void CompatApi::SetClusterVersion(const std::string& key, int32_t version) {
  if (versions_.size() >= kMostVersions && !versions_.contains(key)) versions_.clear();
  versions_[key] = version;
}

int32_t CompatApi::ClusterVersion(const std::string& key) const {
  auto found = versions_.find(key);
  return found == versions_.end() ? 0 : found->second;
}

}  // namespace edl::master
