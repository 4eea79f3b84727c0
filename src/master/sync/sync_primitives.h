#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "master/deadlines.h"
#include "master/ledger/ledger.h"
#include "master/types.h"

namespace edl::master {

// Named barriers, events and locks of a job. The ledger keeps them, for a worker that passed a
// barrier does not come again after a master's restart.
//
// Confined: call it on the master's loop.
class SyncPrimitives {
 public:
  using Reply = std::function<void(bool)>;

  // Barriers that all have passed, and events, beyond so many are forgotten, the oldest first:
  // programs that draw a name for each step would fill the ledger. Who asks for a forgotten one
  // finds a new one.
  static constexpr size_t kMostKept = 1000;

  explicit SyncPrimitives(Ledger& ledger) : ledger_(ledger) {}
  Status Load(const std::string& saved);

  // `replica` arrives at a barrier of the replicas in `running`, as they are at the first arrival.
  // Answers true once all of them arrived or are gone, false at `until`.
  void Arrive(const std::string& name, ReplicaRef replica, const std::vector<ReplicaRef>& running,
              std::optional<Time> until, Reply reply);
  // `running` of an Arrive at it does not matter any more.
  bool HasBarrier(const std::string& name) const { return barriers_.contains(name); }
  void AwaitEvent(const std::string& name, std::optional<Time> until, Reply reply);
  void Notify(const std::string& name);
  void Delete(const std::string& name);
  void DeleteAll();

  // Answers true once `holder` has the lock (again, if it has it already), false at `until`.
  void Acquire(const std::string& name, Incarnation holder, std::optional<Time> until, Reply reply);
  // `holder`: only if it holds it; none: whoever does. False: it was not held so.
  bool Release(const std::string& name, std::optional<Incarnation> holder);

  // Barriers do not wait for a replica that is gone; its locks are free, its calls forgotten.
  void ReplicaGone(ReplicaRef replica);
  void SessionGone(Incarnation session);

  void Tick(Time now);
  void Flush();

 private:
  struct Barrier {
    std::set<ReplicaRef> missing;
    std::set<ReplicaRef> arrived;
  };
  enum class Kind { kBarrier, kEvent, kLock };
  using Key = std::pair<Kind, std::string>;
  struct Waiting {
    Key key;
    Incarnation session;  // kLock
    Reply reply;
  };

  void Wait(Key key, Incarnation session, std::optional<Time> until, Reply reply);
  bool Ready(const Waiting& waiting);
  // Answers those who wait for this and are ready.
  void Settle(const Key& key);
  void Answer(uint64_t id, bool ready);
  void ForgetOldest();

  Ledger& ledger_;  // outlives this
  std::map<std::string, Barrier> barriers_;
  std::deque<std::string> barrier_order_;  // the oldest first
  std::set<std::string> events_;
  std::deque<std::string> event_order_;
  std::map<std::string, Incarnation> locks_;
  std::map<uint64_t, Waiting> waiting_;       // by a number that rises
  std::map<Key, std::set<uint64_t>> queues_;  // of those, in the order of their calls
  Deadlines<uint64_t> deadlines_;
  uint64_t next_waiting_ = 1;
  bool dirty_ = false;
};

}  // namespace edl::master
