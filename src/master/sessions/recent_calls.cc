#include "master/sessions/recent_calls.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "master/ledger/damaged_entry.h"

namespace edl::master {

using nlohmann::json;

Status RecentCalls::Load(const std::string& saved) {
  if (saved.empty()) return Ok();
  const json in = ReadJson(saved);
  if (!in.is_array()) return DamagedEntry("recent_calls", "expected a JSON list");
  for (const json& call : in) {
    if (!call.is_array() || call.size() != 2 || !call[0].is_number_unsigned() ||
        !call[1].is_number_unsigned()) {
      return DamagedEntry("recent_calls",
                          fmt::format("expected two numbers, found {}", Excerpt(call)));
    }
    answers_[call[0].get<uint64_t>()] = call[1].get<uint32_t>();
    order_.push_back(call[0].get<uint64_t>());
  }
  return Ok();
}

std::optional<uint32_t> RecentCalls::Find(uint64_t id) const {
  const auto found = answers_.find(id);
  if (found == answers_.end()) return std::nullopt;
  return found->second;
}

void RecentCalls::Remember(uint64_t id, uint32_t answer) {
  if (id == 0 || !answers_.emplace(id, answer).second) return;
  order_.push_back(id);
  if (order_.size() > kMost) {
    answers_.erase(order_.front());
    order_.pop_front();
  }
  dirty_ = true;
}

void RecentCalls::Flush() {
  if (!dirty_) return;
  dirty_ = false;
  json out = json::array();
  for (const uint64_t id : order_) out.push_back({id, answers_.at(id)});
  ledger_.PutMeta("recent_calls", Dump(out));
}

}  // namespace edl::master
