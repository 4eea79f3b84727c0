#include "master/sync/sync_primitives.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "master/ledger/damaged_entry.h"

namespace edl::master {
namespace {

using nlohmann::json;

json Write(const std::set<ReplicaRef>& replicas) {
  json list = json::array();
  for (const ReplicaRef& replica : replicas) {
    list.push_back({job::NameOf(replica.role), replica.id});
  }
  return list;
}

std::set<ReplicaRef> ReadReplicas(const json& list) {
  std::set<ReplicaRef> replicas;
  for (const json& entry : list) {
    const auto role = job::RoleFromName(entry.at(0).get<std::string>());
    replicas.insert({role.value_or(job::Role::kWorker), entry.at(1).get<int64_t>()});
  }
  return replicas;
}

}  // namespace

Status SyncPrimitives::Load(const std::string& saved) {
  if (saved.empty()) return Ok();
  try {
    const json in = ReadJson(saved);
    for (const auto& [name, barrier] : in.at("barriers").items()) {
      barrier_order_.push_back(name);
      barriers_[name] = {ReadReplicas(barrier.at("missing")), ReadReplicas(barrier.at("arrived"))};
    }
    for (const json& event : in.at("events")) {
      events_.insert(event.get<std::string>());
      event_order_.push_back(event.get<std::string>());
    }
    for (const auto& [name, holder] : in.at("locks").items()) {
      locks_[name] = Incarnation(holder.get<uint64_t>());
    }
    return Ok();
  } catch (const json::exception& error) {
    return DamagedEntry("sync", error.what());
  }
}

void SyncPrimitives::Wait(Key key, Incarnation session, std::optional<Time> until, Reply reply) {
  const uint64_t id = next_waiting_++;
  queues_[key].insert(id);
  if (until) deadlines_.Set(id, *until);
  waiting_[id] = {std::move(key), session, std::move(reply)};
}

void SyncPrimitives::Answer(uint64_t id, bool ready) {
  const auto found = waiting_.find(id);
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  deadlines_.Remove(id);
  const auto queue = queues_.find(waiting.key);
  queue->second.erase(id);
  if (queue->second.empty()) queues_.erase(queue);
  waiting.reply(ready);
}

void SyncPrimitives::Arrive(const std::string& name, ReplicaRef replica,
                            const std::vector<ReplicaRef>& running, std::optional<Time> until,
                            Reply reply) {
  auto found = barriers_.find(name);
  if (found == barriers_.end()) {
    found = barriers_.emplace(name, Barrier{}).first;
    barrier_order_.push_back(name);
    found->second.missing.insert(running.begin(), running.end());
    dirty_ = true;
  }
  dirty_ = found->second.missing.erase(replica) > 0 || dirty_;
  dirty_ = found->second.arrived.insert(replica).second || dirty_;
  Wait({Kind::kBarrier, name}, {}, until, std::move(reply));
  // No call can be answered before the last replica has arrived.
  if (found->second.missing.empty()) Settle({Kind::kBarrier, name});
}

void SyncPrimitives::AwaitEvent(const std::string& name, std::optional<Time> until, Reply reply) {
  Wait({Kind::kEvent, name}, {}, until, std::move(reply));
  if (events_.contains(name)) Settle({Kind::kEvent, name});
}

void SyncPrimitives::Notify(const std::string& name) {
  if (events_.insert(name).second) {
    event_order_.push_back(name);
    dirty_ = true;
  }
  Settle({Kind::kEvent, name});
}

void SyncPrimitives::Delete(const std::string& name) {
  if (barriers_.erase(name) > 0) std::erase(barrier_order_, name);
  if (events_.erase(name) > 0) std::erase(event_order_, name);
  dirty_ = true;
  Settle({Kind::kBarrier, name});
}

void SyncPrimitives::DeleteAll() {
  const auto gone = std::exchange(barriers_, {});
  barrier_order_.clear();
  events_.clear();
  event_order_.clear();
  dirty_ = true;
  for (const auto& [name, barrier] : gone) Settle({Kind::kBarrier, name});
}

void SyncPrimitives::Acquire(const std::string& name, Incarnation holder, std::optional<Time> until,
                             Reply reply) {
  Wait({Kind::kLock, name}, holder, until, std::move(reply));
  const auto held = locks_.find(name);
  if (held == locks_.end() || held->second == holder) Settle({Kind::kLock, name});
}

bool SyncPrimitives::Release(const std::string& name, std::optional<Incarnation> holder) {
  auto found = locks_.find(name);
  if (found == locks_.end() || (holder && found->second != *holder)) return false;
  locks_.erase(found);
  dirty_ = true;
  Settle({Kind::kLock, name});
  return true;
}

void SyncPrimitives::ReplicaGone(ReplicaRef replica) {
  for (auto& [name, barrier] : barriers_) {
    if (barrier.missing.erase(replica) == 0) continue;
    dirty_ = true;
    if (barrier.missing.empty()) Settle({Kind::kBarrier, name});
  }
}

void SyncPrimitives::SessionGone(Incarnation session) {
  std::vector<uint64_t> forgotten;
  for (auto queue = queues_.lower_bound({Kind::kLock, ""}); queue != queues_.end(); ++queue) {
    for (const uint64_t id : queue->second) {
      if (waiting_.at(id).session == session) forgotten.push_back(id);
    }
  }
  for (const uint64_t id : forgotten) Answer(id, false);
  std::vector<std::string> freed;
  for (const auto& [name, holder] : locks_) {
    if (holder == session) freed.push_back(name);
  }
  for (const std::string& name : freed) Release(name, session);
}

bool SyncPrimitives::Ready(const Waiting& waiting) {
  const std::string& name = waiting.key.second;
  switch (waiting.key.first) {
    case Kind::kBarrier: {
      auto found = barriers_.find(name);
      // The barrier was deleted while calls waited: they are ready.
      return found == barriers_.end() || found->second.missing.empty();
    }
    case Kind::kEvent:
      return events_.contains(name);
    case Kind::kLock: {
      const auto [place, taken] = locks_.emplace(name, waiting.session);
      dirty_ = dirty_ || taken;
      return place->second == waiting.session;
    }
  }
  return false;
}

void SyncPrimitives::Settle(const Key& key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return;
  const std::set<uint64_t> ids = queue->second;
  for (const uint64_t id : ids) {
    if (Ready(waiting_.at(id))) Answer(id, true);
  }
}

void SyncPrimitives::Tick(Time now) {
  while (const std::optional<uint64_t> id = deadlines_.TakeDue(now)) Answer(*id, false);
}

void SyncPrimitives::ForgetOldest() {
  for (size_t left = barrier_order_.size(); barriers_.size() > kMostKept && left > 0; --left) {
    const std::string name = std::move(barrier_order_.front());
    barrier_order_.pop_front();
    const auto found = barriers_.find(name);
    if (found->second.missing.empty()) {
      barriers_.erase(found);
    } else {
      barrier_order_.push_back(name);
    }
  }
  for (; events_.size() > kMostKept; event_order_.pop_front()) {
    events_.erase(event_order_.front());
  }
}

void SyncPrimitives::Flush() {
  if (!dirty_) return;
  dirty_ = false;
  ForgetOldest();
  json out = {{"barriers", json::object()}, {"events", events_}, {"locks", json::object()}};
  for (const auto& [name, barrier] : barriers_) {
    out["barriers"][name] = {{"missing", Write(barrier.missing)},
                             {"arrived", Write(barrier.arrived)}};
  }
  for (const auto& [name, holder] : locks_) out["locks"][name] = holder.value();
  ledger_.PutMeta("sync", Dump(out));
}

}  // namespace edl::master
