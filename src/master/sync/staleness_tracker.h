#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "master/deadlines.h"
#include "master/types.h"

namespace edl::master {

// Bounded staleness: how many batches each worker has trained, and who waits for the slowest.
//
// Workers count for themselves and the board by how much: one that comes later begins beside the
// slowest, and so do all after a master's restart. Nothing of it is in the ledger, for the bound is
// then looser once, by what it was.
//
// Confined: call it on the master's loop.
class StalenessTracker {
 public:
  using Reply = std::function<void(bool)>;

  // `session` has trained `batches` by its own count. Answers true once that is at most `ahead`
  // more than the slowest has; false at `until`, when it asks again, or when it is gone.
  void Await(Incarnation session, uint64_t batches, uint64_t ahead, Time until, Reply reply);
  // It has nothing to train, or is gone: nobody waits for it.
  void Leave(Incarnation session);

  void Tick(Time now);

 private:
  struct Progress {
    int64_t begin = 0;  // what its own 0 is here
    int64_t batches = 0;
  };
  struct Waiting {
    int64_t at_least = 0;  // what the slowest must have
    Reply reply;
  };

  int64_t Slowest() const { return counts_.empty() ? 0 : *counts_.begin(); }
  // Ends the wait of a session, if it waits.
  void Answer(Incarnation session, bool ready);
  void Settle();

  // Nothing here is walked over: a call costs O(log n) and the calls that it answers.
  std::map<Incarnation, Progress> progress_;
  std::multiset<int64_t> counts_;           // the batches of all sessions
  std::map<Incarnation, Waiting> waiting_;  // one call a session
  std::set<std::pair<int64_t, Incarnation>> by_need_;
  Deadlines<Incarnation> deadlines_;
};

}  // namespace edl::master
