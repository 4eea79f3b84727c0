#include "master/sync/rendezvous.h"

#include <algorithm>

#include "base/json.h"
#include "master/ledger/damaged_entry.h"

namespace edl::master {

using nlohmann::json;

Status Rendezvous::Load(const std::string& saved) {
  if (saved.empty()) return Ok();
  try {
    const json in = ReadJson(saved);
    in.at("number").get_to(number_);
    for (const json& entry : in.at("members")) {
      current_.push_back({{entry.at(0).get<std::string>(), entry.at(1).get<int32_t>()},
                          entry.at(2).get<int32_t>()});
    }
    next_ = current_;
    return Ok();
  } catch (const json::exception& error) {
    return DamagedEntry("rendezvous", error.what());
  }
}

bool Rendezvous::IsMember(const std::vector<Member>& members, const Process& process) const {
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.process == process; });
}

void Rendezvous::Start(const Process& process, int32_t port) {
  std::erase_if(next_, [&](const Member& member) {
    return member.process == process && member.port != port;
  });
  if (!IsMember(next_, process)) {
    next_.push_back({process, port});
    pending_ = true;
  }
}

void Rendezvous::End(const Process& process) {
  pending_ =
      std::erase_if(next_, [&](const Member& m) { return m.process == process; }) > 0 || pending_;
}

void Rendezvous::HostGone(const std::string& host) {
  const auto there = [&](const Member& member) { return member.process.host == host; };
  pending_ = std::erase_if(next_, there) > 0 || pending_;
  // The change does not wait for processes that have ended.
  for (const Member& member : current_) {
    if (there(member)) asked_.insert(member.process);
  }
}

bool Rendezvous::AllIn(const std::set<Process>& called) const {
  if (called.size() < current_.size()) return false;
  return std::all_of(current_.begin(), current_.end(),
                     [&](const Member& member) { return called.contains(member.process); });
}

void Rendezvous::InstallNext() {
  current_ = next_;
  ranks_.clear();
  pending_ = false;
  asked_.clear();
  reset_.clear();
  barrier_.clear();
  ++number_;
  dirty_ = true;
}

Rendezvous::Rank Rendezvous::RankOf(const Process& process) {
  if (pending_ && AllIn(asked_)) InstallNext();
  asked_.insert(process);
  if (ranks_.empty()) ComputeRanks();
  Rank rank{.size = static_cast<int32_t>(current_.size()), .number = number_};
  if (const auto member = ranks_.find(process); member != ranks_.end()) rank = member->second;
  const auto local = host_sizes_.find(process.host);
  rank.local_size = local == host_sizes_.end() ? 1 : local->second;
  rank.cross_size = std::max<int32_t>(1, static_cast<int32_t>(host_sizes_.size()));
  if (!current_.empty()) {
    rank.address = current_.front().process.host;
    rank.port = current_.front().port;
  }
  return rank;
}

void Rendezvous::ComputeRanks() {
  host_sizes_.clear();
  for (size_t i = 0; i < current_.size(); ++i) {
    const Process& process = current_[i].process;
    const auto [host, is_new] = host_sizes_.try_emplace(process.host, 0);
    const auto hosts = static_cast<int32_t>(host_sizes_.size());
    // If a process is listed twice, the first entry counts.
    ranks_.try_emplace(process, Rank{.rank = static_cast<int32_t>(i),
                                     .size = static_cast<int32_t>(current_.size()),
                                     .number = number_,
                                     .local_rank = host->second,
                                     .cross_rank = hosts - 1});
    ++host->second;
  }
}

bool Rendezvous::ResetSync(const Process& process, int32_t number) {
  if (number != number_) return true;
  reset_.insert(process);
  return AllIn(reset_);
}

bool Rendezvous::BarrierSync(const Process& process, int32_t number) {
  if (number != number_) return true;
  barrier_.insert(process);
  return AllIn(barrier_);
}

void Rendezvous::Flush() {
  if (!dirty_) return;
  dirty_ = false;
  json members = json::array();
  for (const Member& member : current_) {
    members.push_back({member.process.host, member.process.local_id, member.port});
  }
  ledger_.PutMeta("rendezvous", Dump(json{{"number", number_}, {"members", members}}));
}

}  // namespace edl::master
