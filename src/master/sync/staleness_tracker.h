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

// Bounded staleness: holds the calls of workers that are too many batches ahead of the slowest.
//
// Workers report their own counts of batches. A worker that starts later begins level with the
// slowest, and after a restart of the master so do all workers. The ledger keeps none of this:
// after a restart the bound is exceeded once, by at most the bound.
//
// Confined: call it on the master's loop.
class StalenessTracker {
 public:
  using Reply = std::function<void(bool)>;

  // `session` has trained `batches` by its own count. Replies true when that is at most `ahead`
  // more than the count of the slowest; false at `until`, or when the session calls again or
  // leaves.
  void Await(Incarnation session, uint64_t batches, uint64_t ahead, Time until, Reply reply);
  // The session has nothing to train, or has ended: no other session waits for it.
  void Leave(Incarnation session);

  void Tick(Time now);

 private:
  struct Progress {
    int64_t begin = 0;  // added to the session's own count
    int64_t batches = 0;
  };
  struct Waiting {
    int64_t at_least = 0;  // the count that the slowest must reach
    Reply reply;
  };

  int64_t Slowest() const { return counts_.empty() ? 0 : *counts_.begin(); }
  // Ends the wait of a session, if it waits.
  void Answer(Incarnation session, bool ready);
  // Answers each call that can be answered.
  void Settle();

  // No call iterates over all sessions: a call costs O(log n), plus the calls that it answers.
  std::map<Incarnation, Progress> progress_;
  std::multiset<int64_t> counts_;           // the batches of all sessions
  std::map<Incarnation, Waiting> waiting_;  // one call per session
  std::set<std::pair<int64_t, Incarnation>> by_need_;
  Deadlines<Incarnation> deadlines_;
};

}  // namespace edl::master
