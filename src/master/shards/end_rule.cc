#include "master/shards/end_rule.h"

#include "job/role.h"

namespace edl::master {

void EndRule::AddLease(Incarnation holder, ReplicaRef replica) {
  participants_.AddLease(holder, replica);
  if (replica.role == job::Role::kChief) chief_used_ = true;
}

void EndRule::RemoveLease(Incarnation holder, ReplicaRef replica) {
  participants_.RemoveLease(holder, replica);
}

void EndRule::AddWait(Incarnation session, ReplicaRef replica) {
  participants_.AddWait(session, replica);
  if (replica.role == job::Role::kChief) chief_used_ = true;
}

void EndRule::RemoveWait(Incarnation session, ReplicaRef replica) {
  participants_.RemoveWait(session, replica);
  if (!participants_.Waits(session)) answered_before_.erase(session);
}

std::vector<uint64_t> EndRule::CallsToFinish(const WaiterQueue::Waiters& waiters,
                                             bool chief_expected) const {
  std::vector<uint64_t> calls;
  if (waiters.empty()) return calls;
  const bool all_holders_wait = participants_.AllHoldersWait();
  // While a holder trains, only sessions that were answered before are answered again. Otherwise
  // nearly all calls are answered and removed, so each call pays for this loop once.
  if (!all_holders_wait && answered_before_.empty()) return calls;
  const bool chief_is_last = chief_expected && chief_used_;
  const Incarnation oldest = participants_.FirstWaiting();
  for (const Waiter& waiter : waiters) {
    const bool alone = !participants_.any_holders() || participants_.IsOnlyHolder(waiter.session);
    const bool last =
        chief_is_last ? waiter.replica.role == job::Role::kChief : waiter.session == oldest;
    const bool again = answered_before_.contains(waiter.session);
    if (alone || again || (all_holders_wait && !last)) calls.push_back(waiter.call);
  }
  return calls;
}

}  // namespace edl::master
