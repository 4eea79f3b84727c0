#pragma once

#include <cstdint>
#include <map>

#include "master/types.h"

namespace edl::master {

// Counts, for one dataset, the leases and waiting calls of each session and replica, so that the
// end of the data is decided without a loop over all of them.
//
// Confined: call it on the master's loop.
class Participants {
 public:
  void AddLease(Incarnation holder, ReplicaRef replica);
  void RemoveLease(Incarnation holder, ReplicaRef replica);
  void AddWait(Incarnation session, ReplicaRef replica);
  void RemoveWait(Incarnation session, ReplicaRef replica);

  bool any_holders() const { return !leases_.empty(); }
  // Every session that holds a lease also waits for a shard.
  bool AllHoldersWait() const { return idle_holders_ == 0; }
  bool IsOnlyHolder(Incarnation session) const {
    return leases_.size() == 1 && leases_.contains(session);
  }
  bool Waits(Incarnation session) const { return waits_.contains(session); }
  // The waiting session with the lowest incarnation, which is the oldest. REQUIRES: a session
  // waits.
  Incarnation FirstWaiting() const { return waits_.begin()->first; }
  // A replica other than this one holds a lease or waits.
  bool AnyOtherThan(ReplicaRef replica) const {
    return replicas_.size() > (replicas_.contains(replica) ? 1u : 0u);
  }

 private:
  std::map<Incarnation, int64_t> leases_;
  std::map<Incarnation, int64_t> waits_;
  std::map<ReplicaRef, int64_t> replicas_;  // leases and waiting calls
  int64_t idle_holders_ = 0;                // sessions that hold leases and do not wait
};

}  // namespace edl::master
