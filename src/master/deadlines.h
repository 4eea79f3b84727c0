#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"

namespace edl::master {

// At most one deadline for each of many ids. Setting and removing one costs O(log n), and asking
// for those that are due costs nothing for the others.
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
  // Keeps an earlier deadline that is set already.
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
  // Takes out the earliest id whose deadline is `now` or before.
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
