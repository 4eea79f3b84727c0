#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "base/backoff.h"
#include "kube/client.h"
#include "kube/timing.h"

namespace edl::kube {

// The objects to follow.
struct Scope {
  Resource resource;
  std::string ns;  // empty: all namespaces
  Selector selector;
};

// Follows the objects of a scope with a list, and a watch that continues from the list. Listeners
// receive every lasting state of an object; they may miss short-lived states and receive some
// twice. On failures:
//   the watch ended, broke or was silent too long: watches again from the last version
//   410 Expired, "too large resource version", an exception, any other error: lists again
// The delay grows with each consecutive failure. The list after a 410 follows without delay, unless
// the last list is more recent than `short_watch`. Every list reads the most recent state.
//
// Confined to the thread that runs it.
class Reflector {
 public:
  struct Listener {
    // All existing objects. Objects that are not in the list have been deleted.
    std::function<void(ObjectList)> on_list;
    // Called with kAdded, kModified and kDeleted.
    std::function<void(WatchEvent::Kind, Object)> on_event;
    // Called for each failure. The reflector continues to retry.
    std::function<void(const Status&)> on_error;
  };
  struct Options {
    std::chrono::seconds shortest_watch_timeout{300};  // randomised up to twice this
    std::chrono::milliseconds silence{90'000};
    BackoffLimits backoff{std::chrono::milliseconds(800), std::chrono::seconds(30)};
    // A watch that ends earlier than this without an event counts as a failure.
    std::chrono::milliseconds short_watch{1'000};
    // Removes what the listener does not need from each object of a list. A list of all pods of a
    // large cluster would need much memory otherwise.
    std::function<void(Object&)> reduce = {};
  };

  // `connection` outlives this.
  Reflector(Connection& connection, Scope scope, const Timing& timing, Listener listener,
            const Options& options);

  // Blocks until `stop` is requested. Call it once.
  void Run(const std::stop_token& stop);

 private:
  // What to do after a watch.
  enum class Next { kWatch, kWatchLater, kList, kListLater };

  Next Step(Next next, const std::stop_token& stop);
  // Returns false if the list failed.
  bool List(const std::stop_token& stop);
  Next Watch(const std::stop_token& stop);
  Next AfterFailure(const Status& failure, Duration lasted) const;
  void Deliver(WatchEvent event);
  void ReportError(const Status& status) const;

  const Scope scope_;
  const Timing timing_;
  const Listener listener_;
  const Options options_;
  Client client_;  // one attempt per call: this class does the waiting
  Backoff backoff_;
  std::string version_;  // of the last list or event
  Time listed_at_;       // when the last list succeeded
};

}  // namespace edl::kube
