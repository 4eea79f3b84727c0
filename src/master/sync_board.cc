#include "master/sync_board.h"

#include <utility>

#include <nlohmann/json.hpp>

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

std::set<ReplicaRef> Read(const json& list) {
  std::set<ReplicaRef> replicas;
  for (const json& entry : list) {
    const auto role = job::RoleFromName(entry.at(0).get<std::string>());
    replicas.insert({role.value_or(job::Role::kWorker), entry.at(1).get<int64_t>()});
  }
  return replicas;
}

}  // namespace

Status SyncBoard::Load(const std::string& saved) {
  if (saved.empty()) return Ok();
  try {
    const json in = json::parse(saved);
    for (const auto& [name, barrier] : in.at("barriers").items()) {
      barriers_[name] = {Read(barrier.at("missing")), Read(barrier.at("arrived"))};
    }
    for (const json& event : in.at("events")) events_.insert(event.get<std::string>());
    for (const auto& [name, holder] : in.at("locks").items()) {
      locks_[name] = Incarnation(holder.get<uint64_t>());
    }
    return Ok();
  } catch (const json::exception& error) {
    return DataLoss("the barriers and locks in the ledger cannot be read: {}", error.what());
  }
}

void SyncBoard::Changed() {
  dirty_ = true;
  Settle();
}

void SyncBoard::Arrive(const std::string& name, ReplicaRef replica,
                       const std::vector<ReplicaRef>& running, std::optional<Time> until,
                       Reply reply) {
  auto found = barriers_.find(name);
  if (found == barriers_.end()) {
    found = barriers_.emplace(name, Barrier{}).first;
    found->second.missing.insert(running.begin(), running.end());
  }
  found->second.missing.erase(replica);
  found->second.arrived.insert(replica);
  waiting_.push_back({Waiting::Kind::kBarrier, name, {}, until, std::move(reply)});
  Changed();
}

void SyncBoard::AwaitEvent(const std::string& name, std::optional<Time> until, Reply reply) {
  waiting_.push_back({Waiting::Kind::kEvent, name, {}, until, std::move(reply)});
  Settle();
}

void SyncBoard::Notify(const std::string& name) {
  events_.insert(name);
  Changed();
}

void SyncBoard::Delete(const std::string& name) {
  barriers_.erase(name);
  events_.erase(name);
  Changed();
}

void SyncBoard::DeleteAll() {
  barriers_.clear();
  events_.clear();
  Changed();
}

void SyncBoard::Acquire(const std::string& name, Incarnation holder, std::optional<Time> until,
                        Reply reply) {
  waiting_.push_back({Waiting::Kind::kLock, name, holder, until, std::move(reply)});
  Settle();
}

bool SyncBoard::Release(const std::string& name, std::optional<Incarnation> holder) {
  auto found = locks_.find(name);
  if (found == locks_.end() || (holder && found->second != *holder)) return false;
  locks_.erase(found);
  Changed();
  return true;
}

void SyncBoard::ReplicaGone(ReplicaRef replica) {
  for (auto& [name, barrier] : barriers_) barrier.missing.erase(replica);
  Changed();
}

void SyncBoard::SessionGone(Incarnation session) {
  std::erase_if(locks_, [&](const auto& lock) { return lock.second == session; });
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto here = waiting++;
    if (here->kind != Waiting::Kind::kLock || here->session != session) continue;
    const Reply reply = std::move(here->reply);
    waiting_.erase(here);
    reply(false);
  }
  Changed();
}

bool SyncBoard::Ready(const Waiting& waiting) {
  switch (waiting.kind) {
    case Waiting::Kind::kBarrier: {
      auto found = barriers_.find(waiting.name);
      // Deleted while they waited: nobody is left to wait for.
      return found == barriers_.end() || found->second.missing.empty();
    }
    case Waiting::Kind::kEvent:
      return events_.contains(waiting.name);
    case Waiting::Kind::kLock: {
      const auto [place, taken] = locks_.emplace(waiting.name, waiting.session);
      dirty_ = dirty_ || taken;
      return place->second == waiting.session;
    }
  }
  return false;
}

void SyncBoard::Settle() {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto here = waiting++;
    if (!Ready(*here)) continue;
    const Reply reply = std::move(here->reply);
    waiting_.erase(here);
    reply(true);
  }
}

void SyncBoard::Tick(Time now) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto here = waiting++;
    if (!here->until || *here->until > now) continue;
    const Reply reply = std::move(here->reply);
    waiting_.erase(here);
    reply(false);
  }
}

void SyncBoard::Flush() {
  if (!dirty_) return;
  dirty_ = false;
  json out = {{"barriers", json::object()}, {"events", events_}, {"locks", json::object()}};
  for (const auto& [name, barrier] : barriers_) {
    out["barriers"][name] = {{"missing", Write(barrier.missing)},
                             {"arrived", Write(barrier.arrived)}};
  }
  for (const auto& [name, holder] : locks_) out["locks"][name] = holder.value();
  ledger_.PutMeta("sync", out.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace edl::master
