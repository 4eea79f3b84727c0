#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "master/ledger/ledger.h"
#include "master/sessions/session.h"
#include "master/types.h"

namespace edl::master {

// An open lease.
struct Lease {
  LeaseRow row;
  ReplicaRef replica;    // of the holder
  Time since;            // start of the hang clock, which stands still while the holder waits
  bool suspect = false;  // compatibility API: the holder may never have received the lease
};

// All open leases in memory, indexed by lease number, holder, replica, dataset and task number.
// The table does not write to the ledger; its caller does.
//
// Confined: call it on the master's loop.
class LeaseTable {
 public:
  // Adds a lease whose hang clock starts at `now`. `holder` is null if its session has ended.
  const Lease& Add(const LeaseRow& row, const Session* holder, Time now);
  // REQUIRES: the lease is open.
  Lease Remove(LeaseId id);
  // Frees what the table keeps for a session. REQUIRES: the session holds no lease.
  void ForgetHolder(Incarnation holder) { by_holder_.erase(holder); }

  // Null: the lease is not open (any more).
  const Lease* Find(LeaseId id) const;
  // The lease that a published client names by dataset and task number.
  const Lease* FindTask(DatasetId dataset, int32_t task) const;
  // The references stay valid. Copy the set before you remove leases in a loop.
  const std::set<LeaseId>& HeldBy(Incarnation holder) const;
  const std::set<LeaseId>& OfDataset(DatasetId dataset) const;
  int64_t CountOf(ReplicaRef replica) const;
  const std::map<LeaseId, Lease>& all() const { return leases_; }

  // Takes the time from `from` to `now` out of the hang clocks of all leases of `holder`.
  void SkipTime(Incarnation holder, Time from, Time now);

  // Compatibility API. A published client reports its leases in order, so when it reports one, it
  // may never have received the older ones that it holds: SuspectOlder marks those. If a client
  // reports a marked lease after all, it does not keep the order, and ClearSuspects takes its
  // marks back. Both affect the leases of the same holder and dataset as `reported`.
  void SuspectOlder(const Lease& reported);
  void ClearSuspects(const Lease& reported);
  // The marked leases of a dataset.
  const std::set<LeaseId>& SuspectsOf(DatasetId dataset) const;

 private:
  struct OfOneDataset {
    std::set<LeaseId> open;
    std::set<LeaseId> suspects;
  };

  std::map<LeaseId, Lease> leases_;
  std::map<Incarnation, std::set<LeaseId>> by_holder_;  // a holder stays until ForgetHolder
  std::map<DatasetId, OfOneDataset> by_dataset_;
  std::map<ReplicaRef, int64_t> counts_;
  std::map<std::pair<DatasetId, int32_t>, LeaseId> by_task_;  // of the compatibility API only
};

}  // namespace edl::master
