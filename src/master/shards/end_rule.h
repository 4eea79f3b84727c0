#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "master/shards/participants.h"
#include "master/shards/waiter_queue.h"
#include "master/types.h"

namespace edl::master {

// Decides which of the calls that wait for one dataset are answered Finished, once no shard is left
// to lease.
//
// A training program often cannot report its last records before it knows that the data has ended:
// they are in a shuffle buffer or an unfilled batch. So a call is answered Finished as soon as
// every session that holds a lease waits. One session is answered last, when no other session holds
// a lease any more, so that it can take over shards that others lose: the chief, or, if none is
// expected, the oldest session that waits. docs/states/shard.md has the rule and its reasons.
//
// Confined: call it on the master's loop.
class EndRule {
 public:
  void AddLease(Incarnation holder, ReplicaRef replica);
  void RemoveLease(Incarnation holder, ReplicaRef replica);
  void AddWait(Incarnation session, ReplicaRef replica);
  void RemoveWait(Incarnation session, ReplicaRef replica);
  // A session that waits was answered Finished before. REQUIRES: the session waits.
  void MarkAnsweredBefore(Incarnation session) { answered_before_.insert(session); }
  // The dataset was reset: earlier answers do not count.
  void ForgetAnswers() { answered_before_.clear(); }

  // A replica other than this one holds a lease or waits.
  bool AnyOtherThan(ReplicaRef replica) const { return participants_.AnyOtherThan(replica); }

  // The calls to answer Finished. `waiters` are all calls that wait for the dataset.
  // `chief_expected`: a chief runs or will run again. REQUIRES: no shard is left to lease.
  std::vector<uint64_t> CallsToFinish(const WaiterQueue::Waiters& waiters,
                                      bool chief_expected) const;

 private:
  Participants participants_;
  std::set<Incarnation> answered_before_;  // among the sessions that wait
  bool chief_used_ = false;                // a chief has read this dataset
};

}  // namespace edl::master
