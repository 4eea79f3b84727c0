#include "master/api/compat_api.h"

#include <chrono>
#include <utility>

namespace edl::master {

ReplicaRef CompatApi::ReplicaOf(int64_t worker_id, const std::string& worker_type) {
  const auto decoded = job::FromWorkerId(worker_id);
  if (!decoded) return {job::Role::kWorker, worker_id};
  // A client that was started by hand may send small ids and its type.
  if (decoded->role == job::Role::kWorker) {
    const auto role = job::RoleFromName(worker_type);
    if (role && *role != job::Role::kMaster) return {*role, decoded->id};
  }
  return {decoded->role, decoded->id};
}

Result<Session*> CompatApi::SessionOf(ReplicaRef replica) {
  Session* session = parts_.sessions.FindCompatApi(replica);
  if (session == nullptr) {
    if (parts_.keeper.Find(replica) == nullptr && ++unknown_ > kMostUnknown) {
      return ResourceExhausted(
          "{} {} is not a replica of this job, and {} such callers came before",
          job::NameOf(replica.role), replica.id, kMostUnknown);
    }
    session = &parts_.sessions.Open(replica, true, "", parts_.now);
  }
  session->heard_at = parts_.now;
  parts_.keeper.troubled().Clear(replica);
  return session;
}

void CompatApi::Fetch(uint64_t call, ReplicaRef replica, const std::string& dataset,
                      const Reply<std::optional<LeasedShard>>& reply) {
  const Result<Session*> found = SessionOf(replica);
  if (!found.ok()) {
    parts_.outbox.Send<std::optional<LeasedShard>>(reply, found.status());
    return;
  }
  Session& session = **found;
  session.fetch_cut.reset();
  if (Status leases = CheckLeasesShards(parts_.spec); !leases.ok()) {
    session.fetch_answered = true;
    parts_.outbox.Send<std::optional<LeasedShard>>(reply, std::move(leases));
    return;
  }
  if (replica.role == job::Role::kPs) {
    session.fetch_answered = true;
    parts_.keeper.NotePsAskedForData(replica);
    parts_.outbox.Send<std::optional<LeasedShard>>(reply, std::optional<LeasedShard>());
    return;
  }
  parts_.dispatcher.Ask(
      Waiter{.call = call,
             .session = session.incarnation,
             .dataset = dataset,
             .reply =
                 [this, reply, incarnation = session.incarnation](Answer answer,
                                                                  std::vector<LeasedShard> shards) {
                   if (Session* session = parts_.sessions.Find(incarnation)) {
                     session->fetch_answered = true;
                   }
                   std::optional<LeasedShard> shard;
                   if (!shards.empty()) shard = std::move(shards.front());
                   if (answer == Answer::kShards || answer == Answer::kFinished) {
                     parts_.outbox.Send<std::optional<LeasedShard>>(reply, std::move(shard));
                   } else {
                     parts_.outbox.Send<std::optional<LeasedShard>>(
                         reply, Unavailable("the master no longer counts the caller as running"));
                   }
                 }},
      /*hold_unknown=*/true, parts_.now);
}

bool CompatApi::FetchCut(uint64_t call, ReplicaRef replica, std::optional<LeaseId> granted) {
  const bool waited = parts_.dispatcher.DropWaiter(call, parts_.now);
  if (Session* session = parts_.sessions.FindCompatApi(replica); session != nullptr) {
    if (waited || granted) session->fetch_cut = parts_.now;
  }
  if (granted) parts_.dispatcher.GiveBack(*granted, parts_.now);
  return waited;
}

void CompatApi::ReportTask(const std::string& dataset, int32_t task, const std::string& error) {
  parts_.dispatcher.ReportTask(dataset, task, error.empty() ? Outcome::kDone : Outcome::kFailed,
                               error, parts_.now);
}

void CompatApi::WorkerSync(const std::string& name, ReplicaRef replica, const Reply<bool>& reply) {
  // These clients poll once a second, so nothing is held.
  parts_.sync.Arrive(name, replica,
                     parts_.sync.HasBarrier(name) ? std::vector<ReplicaRef>()
                                                  : parts_.keeper.Running(replica.role),
                     parts_.now,
                     [this, reply](bool ready) { parts_.outbox.Send<bool>(reply, ready); });
  parts_.sync.Tick(parts_.now);
}

void CompatApi::WaitWorkerSync(const std::string& name, const Reply<bool>& reply) {
  parts_.sync.AwaitEvent(name, parts_.now,
                         [this, reply](bool ready) { parts_.outbox.Send<bool>(reply, ready); });
  parts_.sync.Tick(parts_.now);
}

void CompatApi::AcquireLock(const std::string& name, ReplicaRef replica, int32_t seconds,
                            const Reply<bool>& reply) {
  std::optional<Time> until;
  if (seconds >= 0) until = parts_.now + std::chrono::seconds(seconds);
  const Result<Session*> session = SessionOf(replica);
  if (!session.ok()) {
    parts_.outbox.Send<bool>(reply, session.status());
    return;
  }
  parts_.sync.Acquire(name, (*session)->incarnation, until,
                      [this, reply](bool acquired) { parts_.outbox.Send<bool>(reply, acquired); });
}

bool CompatApi::LeftUnanswered(ReplicaRef ref) const {
  const ReplicaKeeper::Replica* replica = parts_.keeper.Find(ref);
  const bool trains = ref.role == job::Role::kWorker || ref.role == job::Role::kChief;
  if (!trains || replica == nullptr || replica->row.joined || !parts_.dispatcher.AnythingLeft()) {
    return false;
  }
  const Session* session = parts_.sessions.FindCompatApi(ref);
  // Its fetch ended with the master's last life (the first one without a trace in the ledger), and
  // it never came back to ask again.
  if (session == nullptr) return replica->from_ledger;
  if (session->ended) return false;
  if (session->from_ledger && !session->fetch_answered) return true;
  // Cut off while it lived on: a process that ends by its own will hangs up at its very end.
  constexpr std::chrono::seconds kLivedOn{2};
  return session->fetch_cut && parts_.now - *session->fetch_cut >= kLivedOn;
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
