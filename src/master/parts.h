#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "master/ledger/ledger.h"
#include "master/progress_log.h"
#include "master/replicas/replica_keeper.h"
#include "master/sessions/session.h"
#include "master/shards/dispatcher.h"
#include "master/sync/rendezvous.h"
#include "master/sync/staleness_tracker.h"
#include "master/sync/sync_primitives.h"

namespace edl::master {

template <typename T>
using Reply = std::function<void(Result<T>)>;

// What a call without an answer of its own is answered.
struct Done {};

// Answers that are decided. They may leave once the ledger has what they rest on, in order.
//
// Confined: call it on the master's loop.
class Outbox {
 public:
  void Add(std::function<void()> send) { undurable_.push_back(std::move(send)); }

  template <typename T>
  void Send(const Reply<T>& reply, Result<T> answer) {
    Add([reply, answer = std::move(answer)]() mutable { reply(std::move(answer)); });
  }

  void Clear() {
    undurable_.clear();
    durable_.clear();
  }
  // Call it after a commit: what was added before may leave.
  void OnCommitted() {
    for (auto& send : undurable_) durable_.push_back(std::move(send));
    undurable_.clear();
  }
  // Lets at most so many leave. Sending costs a system call each.
  void Release(size_t at_most) {
    for (; at_most > 0 && !durable_.empty(); --at_most) {
      const std::function<void()> send = std::move(durable_.front());
      durable_.pop_front();
      send();
    }
  }
  // How many may leave and have not.
  size_t releasable() const { return durable_.size(); }

 private:
  std::vector<std::function<void()>> undurable_;
  std::deque<std::function<void()>> durable_;
};

// The parts of the core that both APIs work on. All outlive the APIs.
struct Parts {
  Sessions& sessions;
  Dispatcher& dispatcher;
  SyncPrimitives& sync;
  StalenessTracker& staleness;
  Rendezvous& rendezvous;
  ReplicaKeeper& keeper;
  ProgressLog& progress;
  Outbox& outbox;
  const job::JobSpec& spec;
  const Time& now;  // loop time: stands still while the master does not run
};

// FailedPrecondition: the job's master leases no shards (--need_task_manager=false).
Status CheckLeasesShards(const job::JobSpec& spec);

// Takes back everything a session has and forgets it.
void CloseSession(Parts& parts, Incarnation incarnation);

}  // namespace edl::master
