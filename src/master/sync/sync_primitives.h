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

// The named barriers, events and locks of a job. The ledger keeps them, because a worker that has
// passed a barrier does not arrive again after a restart of the master.
//
// Confined: call it on the master's loop.
class SyncPrimitives {
 public:
  using Reply = std::function<void(bool)>;

  // The limit of passed barriers and of events. Beyond it the oldest are forgotten, because
  // programs that use a new name for each step would fill the ledger. A forgotten name is a new
  // one.
  static constexpr size_t kMostKept = 1000;

  explicit SyncPrimitives(Ledger& ledger) : ledger_(ledger) {}
  Status Load(const std::string& saved);

  // `replica` arrives at a barrier. The first arrival creates the barrier, for the replicas in
  // `running`. Replies true when all of them have arrived or ended, false at `until`.
  void Arrive(const std::string& name, ReplicaRef replica, const std::vector<ReplicaRef>& running,
              std::optional<Time> until, Reply reply);
  // The barrier exists, so Arrive ignores `running`.
  bool HasBarrier(const std::string& name) const { return barriers_.contains(name); }
  // Replies true when Notify was called for the name, false at `until`.
  void AwaitEvent(const std::string& name, std::optional<Time> until, Reply reply);
  void Notify(const std::string& name);
  // Deletes the barrier and the event of that name.
  void Delete(const std::string& name);
  void DeleteAll();

  // Replies true when `holder` has the lock, also if it held it before; false at `until`.
  void Acquire(const std::string& name, Incarnation holder, std::optional<Time> until, Reply reply);
  // Releases a lock that `holder` holds; nullopt: a lock of any holder. Returns false if nothing
  // was released.
  bool Release(const std::string& name, std::optional<Incarnation> holder);

  // Barriers no longer wait for the replica.
  void ReplicaGone(ReplicaRef replica);
  // Releases the locks of a session and drops its calls for locks.
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
  // Answers the calls for this key that can be answered.
  void Settle(const Key& key);
  void Answer(uint64_t id, bool ready);
  void ForgetOldest();

  Ledger& ledger_;  // outlives this
  std::map<std::string, Barrier> barriers_;
  std::deque<std::string> barrier_order_;  // the oldest first
  std::set<std::string> events_;
  std::deque<std::string> event_order_;
  std::map<std::string, Incarnation> locks_;
  std::map<uint64_t, Waiting> waiting_;       // by a rising number
  std::map<Key, std::set<uint64_t>> queues_;  // numbers of waiting calls, in their order
  Deadlines<uint64_t> deadlines_;
  uint64_t next_waiting_ = 1;
  bool dirty_ = false;
};

}  // namespace edl::master
