#include "kube/work_queue.h"

#include <algorithm>

namespace edl::kube {

WorkQueue::WorkQueue(const Clock& clock, const Options& options)
    : clock_(clock), options_(options) {}

void WorkQueue::Enqueue(const ObjectKey& key) {
  if (running_.contains(key)) {
    again_.insert(key);
    return;
  }
  if (!queued_.emplace(key, clock_.Now()).second) return;
  queue_.push_back(key);
  ++added_;
  changed_.NotifyOne();
}

void WorkQueue::Add(const ObjectKey& key) {
  const MutexLock lock(mutex_);
  Enqueue(key);
}

void WorkQueue::EnqueueAt(const ObjectKey& key, Time time) {
  const auto known = due_.find(key);
  if (known != due_.end()) {
    if (known->second <= time) return;
    by_time_.erase({known->second, key});
  }
  due_[key] = time;
  by_time_.emplace(time, key);
  changed_.NotifyOne();  // a thread that waits may have to wake up earlier
}

void WorkQueue::AddAt(const ObjectKey& key, Time time) {
  const MutexLock lock(mutex_);
  EnqueueAt(key, time);
}

void WorkQueue::MoveDue() {
  const Time now = clock_.Now();
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const ObjectKey key = by_time_.begin()->second;
    by_time_.erase(by_time_.begin());
    due_.erase(key);
    Enqueue(key);
  }
}

std::optional<ObjectKey> WorkQueue::TakeFirst() {
  MoveDue();
  if (queue_.empty()) return std::nullopt;
  ObjectKey key = std::move(queue_.front());
  queue_.pop_front();
  const Time now = clock_.Now();
  const auto queued = queued_.find(key);
  waits_.Add(now - queued->second);
  queued_.erase(queued);
  running_.emplace(key, now);
  return key;
}

std::optional<ObjectKey> WorkQueue::TryTake() {
  const MutexLock lock(mutex_);
  return TakeFirst();
}

std::optional<ObjectKey> WorkQueue::Take(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  const MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    if (auto key = TakeFirst()) return key;
    if (by_time_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, by_time_.begin()->first);
    }
  }
  return std::nullopt;
}

void WorkQueue::EndRun(const ObjectKey& key) {
  if (const auto run = running_.find(key); run != running_.end()) {
    runs_.Add(clock_.Now() - run->second);
    running_.erase(run);
  }
  if (again_.erase(key) > 0) Enqueue(key);
}

void WorkQueue::Succeeded(const ObjectKey& key) {
  const MutexLock lock(mutex_);
  failures_.erase(key);
  EndRun(key);
}

void WorkQueue::Failed(const ObjectKey& key, Duration longest_delay) {
  const MutexLock lock(mutex_);
  ++retried_;
  const Duration delay = options_.backoff.After(++failures_[key]);
  EnqueueAt(key, clock_.Now() + std::min(delay, longest_delay));
  EndRun(key);
}

void WorkQueue::Forget(const ObjectKey& key) {
  const MutexLock lock(mutex_);
  failures_.erase(key);
  if (const auto due = due_.find(key); due != due_.end()) {
    by_time_.erase({due->second, key});
    due_.erase(due);
  }
  EndRun(key);
}

WorkQueue::Counters WorkQueue::counters() const {
  const MutexLock lock(mutex_);
  Counters counters{.added = added_,
                    .retried = retried_,
                    .queued = queue_.size(),
                    .running = running_.size(),
                    .waits = waits_.Read(),
                    .runs = runs_.Read()};
  const Time now = clock_.Now();
  for (const auto& [key, since] : running_) {
    counters.unfinished_runs += now - since;
    counters.longest_run = std::max(counters.longest_run, now - since);
  }
  return counters;
}

}  // namespace edl::kube
