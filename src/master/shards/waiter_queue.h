#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "master/deadlines.h"
#include "master/types.h"

namespace edl::master {

using LeaseReply = std::function<void(LeaseAnswer, std::vector<LeasedShard>)>;

// A call that waits for shards of a dataset.
struct Waiter {
  uint64_t call = 0;  // unique in this process of the master: the connection that waits
  Incarnation session;
  uint64_t number = 0;  // the caller's number of the call; 0 at the compatibility API
  std::string dataset;
  uint32_t at_most = 1;
  std::optional<Time> deadline;  // nullopt: held until there is an answer (compatibility API)
  // Called once, when the answer is decided. The answer may be sent only after the next commit.
  LeaseReply reply;

  // Set by the dispatcher.
  ReplicaRef replica;
  Time since;
};

// The calls that wait for a shard, for each dataset in the order of their arrival. A call may wait
// for a dataset that nobody has registered yet.
//
// Confined: call it on the master's loop.
class WaiterQueue {
 public:
  using Waiters = std::list<Waiter>;

  // REQUIRES: no call with that id waits.
  void Add(Waiter waiter);
  // REQUIRES: the call waits.
  Waiter Remove(uint64_t call);
  // Null: the call does not wait (any more).
  const Waiter* Find(uint64_t call) const;
  // The call `number` of `session` came again on another connection: it keeps its place under the
  // id `call` and is answered by `reply`. Returns the replaced reply; nullptr: no such call waits.
  LeaseReply Replace(Incarnation session, uint64_t number, uint64_t call, LeaseReply reply);
  // Frees what the queue keeps for the name of a dataset, if no call waits for it.
  void ForgetDataset(const std::string& dataset);

  // The calls that wait for a dataset. Valid until ForgetDataset.
  const Waiters& Of(const std::string& dataset) const;
  // Copy the set before you remove calls in a loop.
  const std::set<uint64_t>& CallsOf(Incarnation session) const;
  bool Waits(Incarnation session) const { return by_session_.contains(session); }
  size_t size() const { return by_call_.size(); }

  // Returns the next call whose deadline has passed, each call once. The call still waits; the
  // caller removes it.
  std::optional<uint64_t> TakeDue(Time now) { return deadlines_.TakeDue(now); }

 private:
  struct Position {
    Waiters* list = nullptr;
    Waiters::iterator waiter;
  };

  std::map<std::string, Waiters> by_dataset_;
  std::map<uint64_t, Position> by_call_;
  std::map<Incarnation, std::set<uint64_t>> by_session_;
  Deadlines<uint64_t> deadlines_;
};

}  // namespace edl::master
