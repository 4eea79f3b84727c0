#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"

namespace edl::master {

// At most one deadline for each of many ids. Set and Remove cost O(log n); TakeDue costs nothing
// for ids that are not due.
//
// Confined: call it on the master's loop.
template <typename Id>
class Deadlines {
 public:
  void Set(Id id, Time at) {
    Remove(id);
    times_.emplace(id, at);
    order_.emplace(at, id);
  }
  // Sets the deadline unless an earlier one is set.
  void SetAtLatest(Id id, Time at) {
    const auto found = times_.find(id);
    if (found == times_.end() || at < found->second) Set(id, at);
  }
  void Remove(Id id) {
    const auto found = times_.find(id);
    if (found == times_.end()) return;
    order_.erase({found->second, id});
    times_.erase(found);
  }
  // Removes and returns the id with the earliest deadline, if that is not after `now`.
  std::optional<Id> TakeDue(Time now) {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    const Id id = order_.begin()->second;
    order_.erase(order_.begin());
    times_.erase(id);
    return id;
  }
  size_t size() const { return times_.size(); }

 private:
  std::map<Id, Time> times_;
  std::set<std::pair<Time, Id>> order_;
};

}  // namespace edl::master
