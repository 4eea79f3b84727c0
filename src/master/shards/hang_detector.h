#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "master/deadlines.h"
#include "master/sessions/session.h"
#include "master/shards/lease_table.h"
#include "master/shards/shard_times.h"
#include "master/shards/waiter_queue.h"
#include "master/types.h"

namespace edl::master {

// Finds leases whose holders work on a shard for too long. The limit follows the times of the
// shards that were done, and rises when a reclaimed shard is reported as done after all. The
// detector decides nothing: the dispatcher reclaims the leases.
//
// Confined: call it on the master's loop.
class HangDetector {
 public:
  // A shard hangs if it takes longer than this and longer than five times what most shards take.
  // A published client cannot send heartbeats, so there this holds for the first shard too.
  static constexpr Duration kHangAtLeast = std::chrono::seconds(300);
  // The limit for our own clients while no shard has been done and the usual time is unknown.
  static constexpr Duration kHangAtFirst = std::chrono::seconds(3600);

  struct Hung {
    LeaseId lease;
    Duration busy;  // how long the holder has worked on the shard
    Duration limit;
  };

  // All three outlive the detector.
  HangDetector(const LeaseTable& leases, const WaiterQueue& waiters, const Sessions& sessions)
      : leases_(leases), waiters_(waiters), sessions_(sessions) {}

  void OnLeased(Incarnation holder, Time now) { checks_.SetAtLatest(holder, now + kCheckInterval); }
  // `holder` is null if its session has ended.
  void OnDone(const Lease& lease, const Session* holder, Time now);
  // Call it for a shard that is reported as done under a lease that is not open any more.
  void OnLateReport(LeaseId lease, Time now);

  // Checks the leases of the next holder that is due and returns those that hang, often none.
  // nullopt: no holder is due.
  std::optional<std::vector<Hung>> CheckNext(Time now);
  // A hung lease is about to be reclaimed. `reason` is shown to users.
  void OnReclaimed(const Lease& lease, std::string reason);
  // The holders of the leases reclaimed since the last call, with the reasons.
  std::vector<std::pair<ReplicaRef, std::string>> TakeHungReplicas() {
    return std::exchange(hung_, {});
  }

 private:
  // The leases of each holder are checked at least this often, because the limit moves.
  static constexpr Duration kCheckInterval = std::chrono::seconds(60);
  static constexpr size_t kMostRemembered = 1024;

  static Time BusySince(const Lease& lease, const Session* holder);
  Duration LimitFor(const Session* holder) const;

  const LeaseTable& leases_;
  const WaiterQueue& waiters_;
  const Sessions& sessions_;
  Deadlines<Incarnation> checks_;  // of sessions that hold leases
  ShardTimes shard_times_;
  std::map<LeaseId, Time> reclaimed_;  // with the start of their hang clocks
  Duration known_slow_{0};             // twice the time of a shard that was reclaimed wrongly
  std::vector<std::pair<ReplicaRef, std::string>> hung_;
};

}  // namespace edl::master
