#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// The answers of the latest calls that must not be executed twice, by their request ids, which are
// random numbers of the callers. The ledger stores an answer in the same commit as the changes that
// the call made.
//
// Confined: call it on the master's loop.
class RecentCalls {
 public:
  // More than the number of calls that can be unanswered when a master dies.
  static constexpr size_t kMost = 1024;

  explicit RecentCalls(Ledger& ledger) : ledger_(ledger) {}
  Status Load(const std::string& saved);

  // The answer of a call that was executed before. nullopt: it was not, or `id` is 0 (no id).
  std::optional<uint32_t> Find(uint64_t id) const;
  void Remember(uint64_t id, uint32_t answer);
  void Flush();

 private:
  Ledger& ledger_;  // outlives this
  std::map<uint64_t, uint32_t> answers_;
  std::deque<uint64_t> order_;  // oldest first
  bool dirty_ = false;
};

}  // namespace edl::master
