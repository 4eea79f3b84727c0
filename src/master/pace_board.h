#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "base/clock.h"
#include "master/types.h"

namespace edl::master {

// Bounded staleness: how many batches each worker has trained, and who waits for the slowest.
//
// Workers count for themselves and the board by how much: one that comes later begins beside the
// slowest, and so do all after a master's restart. Nothing of it is in the ledger, for the bound is
// then looser once, by what it was.
//
// Confined: call it on the master's loop.
class PaceBoard {
 public:
  using Reply = std::function<void(bool)>;

  // `session` has trained `batches` by its own count. Answers true once that is at most `ahead`
  // more than the slowest has; false at `until`, when it asks again, or when it is gone.
  void Await(Incarnation session, uint64_t batches, uint64_t ahead, Time until, Reply reply);
  // It has nothing to train, or is gone: nobody waits for it.
  void Rest(Incarnation session);

  void Tick(Time now);

 private:
  struct Pace {
    int64_t begin = 0;  // what its own 0 is here
    int64_t batches = 0;
  };
  struct Waiting {
    Incarnation session;
    int64_t at_least = 0;  // what the slowest must have
    Time until;
    Reply reply;
  };

  int64_t Slowest() const;
  // Answers those of whom `is_over` is true.
  void Answer(bool ready, const std::function<bool(const Waiting&)>& is_over);
  void Settle();

  std::map<Incarnation, Pace> paces_;
  std::list<Waiting> waiting_;
};

}  // namespace edl::master
