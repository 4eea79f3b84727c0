#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "kube/object.h"

namespace edl::kube {

// The keys of objects that a controller must reconcile, for several threads:
//   - a key that is queued several times is taken once;
//   - a key is never taken by two threads at the same time: one that is added while a thread works
//     on it is queued again when that thread is done;
//   - a key that failed is queued again after a delay that grows with each failure in a row.
//
// Thread-safe.
class WorkQueue {
 public:
  struct Options {
    BackoffLimits backoff{std::chrono::milliseconds(5), std::chrono::seconds(1000)};
  };
  struct Counters {
    uint64_t added = 0;
    uint64_t retried = 0;
    size_t queued = 0;
    size_t running = 0;
    Histogram::Reading waits;     // of keys in the queue
    Histogram::Reading runs;      // from Take to Succeeded, Failed or Forget
    Duration unfinished_runs{0};  // of all runs that have not ended, together
    Duration longest_run{0};      // of those
  };

  // `clock` outlives this.
  explicit WorkQueue(const Clock& clock) : WorkQueue(clock, Options()) {}
  WorkQueue(const Clock& clock, const Options& options);

  void Add(const ObjectKey& key);
  // Adds the key at that time, or earlier if it was added for an earlier time before.
  void AddAt(const ObjectKey& key, Time time);

  // Blocks until a key is due. nullopt: `stop` was requested.
  std::optional<ObjectKey> Take(const std::stop_token& stop);
  // Like Take, but returns nullopt if no key is due.
  std::optional<ObjectKey> TryTake();

  // Call one of them for each key that was taken. Failed queues the key again, with a delay of at
  // most `longest_delay`.
  void Succeeded(const ObjectKey& key);
  void Failed(const ObjectKey& key, Duration longest_delay = Duration::max());
  // There is no such object any more: also removes the key from the times of AddAt.
  void Forget(const ObjectKey& key);

  Counters counters() const;

 private:
  void Enqueue(const ObjectKey& key) REQUIRES(mutex_);
  void EnqueueAt(const ObjectKey& key, Time time) REQUIRES(mutex_);
  void MoveDue() REQUIRES(mutex_);
  std::optional<ObjectKey> TakeFirst() REQUIRES(mutex_);
  void EndRun(const ObjectKey& key) REQUIRES(mutex_);

  const Clock& clock_;
  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<ObjectKey> queue_ GUARDED_BY(mutex_);
  std::map<ObjectKey, Time> queued_ GUARDED_BY(mutex_);   // the keys in queue_, since when
  std::map<ObjectKey, Time> running_ GUARDED_BY(mutex_);  // taken, and not done yet, since when
  std::set<ObjectKey> again_ GUARDED_BY(mutex_);          // added while running
  std::map<ObjectKey, Time> due_ GUARDED_BY(mutex_);
  std::set<std::pair<Time, ObjectKey>> by_time_ GUARDED_BY(mutex_);  // the same as due_
  std::map<ObjectKey, int> failures_ GUARDED_BY(mutex_);             // in a row
  uint64_t added_ GUARDED_BY(mutex_) = 0;
  uint64_t retried_ GUARDED_BY(mutex_) = 0;
  Histogram waits_ GUARDED_BY(mutex_);
  Histogram runs_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
