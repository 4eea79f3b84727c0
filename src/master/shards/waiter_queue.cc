#include "master/shards/waiter_queue.h"

#include <iterator>
#include <utility>

#include "base/check.h"

namespace edl::master {

void WaiterQueue::Add(Waiter waiter) {
  const uint64_t call = waiter.call;
  Waiters& list = by_dataset_[waiter.dataset];
  if (waiter.deadline) deadlines_.Set(call, *waiter.deadline);
  by_session_[waiter.session].insert(call);
  list.push_back(std::move(waiter));
  by_call_[call] = {&list, std::prev(list.end())};
}

Waiter WaiterQueue::Remove(uint64_t call) {
  const auto found = by_call_.find(call);
  CHECK(found != by_call_.end(), "call {} does not wait", call);
  const Position position = found->second;
  Waiter removed = std::move(*position.waiter);
  position.list->erase(position.waiter);
  by_call_.erase(found);
  deadlines_.Remove(call);
  const auto calls = by_session_.find(removed.session);
  calls->second.erase(call);
  if (calls->second.empty()) by_session_.erase(calls);
  return removed;
}

const Waiter* WaiterQueue::Find(uint64_t call) const {
  const auto found = by_call_.find(call);
  return found == by_call_.end() ? nullptr : &*found->second.waiter;
}

LeaseReply WaiterQueue::Replace(Incarnation session, uint64_t number, uint64_t call,
                                LeaseReply reply) {
  const auto calls = by_session_.find(session);
  if (calls == by_session_.end()) return nullptr;
  for (const uint64_t old_call : calls->second) {
    const Position position = by_call_.at(old_call);
    Waiter& waiter = *position.waiter;
    if (waiter.number != number) continue;
    waiter.call = call;
    by_call_.erase(old_call);
    by_call_[call] = position;
    calls->second.erase(old_call);
    calls->second.insert(call);
    deadlines_.Remove(old_call);
    if (waiter.deadline) deadlines_.Set(call, *waiter.deadline);
    return std::exchange(waiter.reply, std::move(reply));
  }
  return nullptr;
}

void WaiterQueue::ForgetDataset(const std::string& dataset) {
  const auto found = by_dataset_.find(dataset);
  if (found != by_dataset_.end() && found->second.empty()) by_dataset_.erase(found);
}

const WaiterQueue::Waiters& WaiterQueue::Of(const std::string& dataset) const {
  static const Waiters none;
  const auto found = by_dataset_.find(dataset);
  return found == by_dataset_.end() ? none : found->second;
}

const std::set<uint64_t>& WaiterQueue::CallsOf(Incarnation session) const {
  static const std::set<uint64_t> none;
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? none : found->second;
}

}  // namespace edl::master
