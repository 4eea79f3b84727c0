#include "master/shards/participants.h"

#include "base/check.h"

namespace edl::master {
namespace {

// Returns whether this is the first entry of the key.
template <typename Key>
bool Count(std::map<Key, int64_t>& counts, Key key) {
  return ++counts[key] == 1;
}

// Returns whether this was the last entry of the key. REQUIRES: Count was called for it.
template <typename Key>
bool Uncount(std::map<Key, int64_t>& counts, Key key) {
  const auto found = counts.find(key);
  CHECK(found != counts.end(), "a lease or call ends that was not counted");
  if (--found->second > 0) return false;
  counts.erase(found);
  return true;
}

}  // namespace

void Participants::AddLease(Incarnation holder, ReplicaRef replica) {
  Count(replicas_, replica);
  if (Count(leases_, holder) && !waits_.contains(holder)) ++idle_holders_;
}

void Participants::RemoveLease(Incarnation holder, ReplicaRef replica) {
  Uncount(replicas_, replica);
  if (Uncount(leases_, holder) && !waits_.contains(holder)) --idle_holders_;
}

void Participants::AddWait(Incarnation session, ReplicaRef replica) {
  Count(replicas_, replica);
  if (Count(waits_, session) && leases_.contains(session)) --idle_holders_;
}

void Participants::RemoveWait(Incarnation session, ReplicaRef replica) {
  Uncount(replicas_, replica);
  if (Uncount(waits_, session) && leases_.contains(session)) ++idle_holders_;
}

}  // namespace edl::master
