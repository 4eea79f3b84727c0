#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "master/dispatcher.h"
#include "master/ledger.h"
#include "master/pace_board.h"
#include "master/progress_log.h"
#include "master/replica_keeper.h"
#include "master/session.h"
#include "master/sync_board.h"
#include "master/world.h"

namespace edl::master {

template <typename T>
using Reply = std::function<void(Result<T>)>;

// What a call without an answer of its own is answered.
struct Done {};

// Answers that are decided and may leave once the ledger has what they rest on.
//
// Confined: call it on the master's loop.
class Outbox {
 public:
  void Add(std::function<void()> send) { waiting_.push_back(std::move(send)); }

  template <typename T>
  void Send(const Reply<T>& reply, Result<T> answer) {
    Add([reply, answer = std::move(answer)]() mutable { reply(std::move(answer)); });
  }

  void Clear() { waiting_.clear(); }
  // After the commit.
  void Release() {
    const std::vector<std::function<void()>> all = std::exchange(waiting_, {});
    for (const auto& send : all) send();
  }

 private:
  std::vector<std::function<void()>> waiting_;
};

// The parts of the core that both doors work on. All outlive the doors.
struct Parts {
  Sessions& sessions;
  Dispatcher& dispatcher;
  SyncBoard& sync;
  PaceBoard& pace;
  World& world;
  ReplicaKeeper& keeper;
  ProgressLog& progress;
  Outbox& outbox;
  const job::JobSpec& spec;
  const Time& now;  // loop time: stands still while the master does not run
};

// Takes back everything a session has and forgets it.
void CloseSession(Parts& parts, Incarnation incarnation);

}  // namespace edl::master
