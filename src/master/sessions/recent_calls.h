#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// What the latest calls that must not be carried out twice were answered, by the random numbers of
// their callers. The ledger keeps them, in the commit of what they changed.
//
// Confined: call it on the master's loop.
class RecentCalls {
 public:
  // More than there can be calls on their way when a master dies.
  static constexpr size_t kMost = 1024;

  explicit RecentCalls(Ledger& ledger) : ledger_(ledger) {}
  Status Load(const std::string& saved);

  // The answer of a call that was carried out before; nullopt: it was not, or has no id (0).
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
