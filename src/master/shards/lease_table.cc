#include "master/shards/lease_table.h"

#include <algorithm>

#include "base/check.h"

namespace edl::master {
namespace {

const std::set<LeaseId>& NoLeases() {
  static const std::set<LeaseId> none;
  return none;
}

}  // namespace

const Lease& LeaseTable::Add(const LeaseRow& row, const Session* holder, Time now) {
  const ReplicaRef replica = holder == nullptr ? ReplicaRef{} : holder->replica;
  Lease& lease = leases_[row.lease];
  lease = Lease{.row = row, .replica = replica, .since = now};
  by_holder_[row.holder].insert(row.lease);
  by_dataset_[row.dataset].open.insert(row.lease);
  ++counts_[replica];
  if (holder != nullptr && holder->compat_api) by_task_[{row.dataset, row.task}] = row.lease;
  return lease;
}

Lease LeaseTable::Remove(LeaseId id) {
  const auto found = leases_.find(id);
  CHECK(found != leases_.end(), "lease {} is not open", id);
  const Lease lease = found->second;
  leases_.erase(found);
  by_holder_[lease.row.holder].erase(id);
  OfOneDataset& dataset = by_dataset_[lease.row.dataset];
  dataset.open.erase(id);
  dataset.suspects.erase(id);
  if (--counts_[lease.replica] == 0) counts_.erase(lease.replica);
  by_task_.erase({lease.row.dataset, lease.row.task});
  return lease;
}

const Lease* LeaseTable::Find(LeaseId id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

const Lease* LeaseTable::FindTask(DatasetId dataset, int32_t task) const {
  const auto found = by_task_.find({dataset, task});
  return found == by_task_.end() ? nullptr : Find(found->second);
}

const std::set<LeaseId>& LeaseTable::HeldBy(Incarnation holder) const {
  const auto found = by_holder_.find(holder);
  return found == by_holder_.end() ? NoLeases() : found->second;
}

const std::set<LeaseId>& LeaseTable::OfDataset(DatasetId dataset) const {
  const auto found = by_dataset_.find(dataset);
  return found == by_dataset_.end() ? NoLeases() : found->second.open;
}

int64_t LeaseTable::CountOf(ReplicaRef replica) const {
  const auto found = counts_.find(replica);
  return found == counts_.end() ? 0 : found->second;
}

void LeaseTable::SkipTime(Incarnation holder, Time from, Time now) {
  for (const LeaseId id : HeldBy(holder)) {
    Lease& lease = leases_.at(id);
    lease.since += now - std::max(from, lease.since);
  }
}

void LeaseTable::SuspectOlder(const Lease& reported) {
  for (const LeaseId id : HeldBy(reported.row.holder)) {
    if (id >= reported.row.lease) break;
    Lease& lease = leases_.at(id);
    if (lease.row.dataset != reported.row.dataset) continue;
    lease.suspect = true;
    by_dataset_[lease.row.dataset].suspects.insert(id);
  }
}

void LeaseTable::ClearSuspects(const Lease& reported) {
  for (const LeaseId id : HeldBy(reported.row.holder)) {
    Lease& lease = leases_.at(id);
    if (lease.row.dataset != reported.row.dataset) continue;
    lease.suspect = false;
    by_dataset_[lease.row.dataset].suspects.erase(id);
  }
}

const std::set<LeaseId>& LeaseTable::SuspectsOf(DatasetId dataset) const {
  const auto found = by_dataset_.find(dataset);
  return found == by_dataset_.end() ? NoLeases() : found->second.suspects;
}

}  // namespace edl::master
