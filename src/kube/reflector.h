#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "base/backoff.h"
#include "kube/client.h"
#include "kube/timing.h"

namespace edl::kube {

// Which objects to follow.
struct Scope {
  Resource resource;
  std::string ns;  // empty: all of them
  Selector selector;
};

// Follows the objects of a scope by a list and a watch that goes on from it, whatever the server
// does: it resumes a watch that ended, and lists again where a watch cannot go on. Whoever listens
// sees every state that lasts, though not every state in between, and some of them twice.
//   a watch that ended, or whose connection broke or fell silent    watches on from where it was
//   410 Expired, "too large resource version", any other refusal    lists again
// After a failure it waits, longer each time. It does not wait before the list that follows 410,
// unless the last list is less than `short_watch` old. A list is always of the most recent state.
//
// Confined to the thread that runs it.
class Reflector {
 public:
  struct Listener {
    // All objects there are. What is not among them is gone.
    std::function<void(ObjectList)> on_list;
    // kAdded, kModified and kDeleted.
    std::function<void(WatchEvent::Kind, Object)> on_event;
    // What it cannot do for now. It goes on trying.
    std::function<void(const Status&)> on_trouble;
  };
  struct Options {
    std::chrono::seconds shortest_watch_timeout{300};  // up to twice as much, by chance
    std::chrono::milliseconds silence{90'000};
    BackoffLimits backoff{std::chrono::milliseconds(800), std::chrono::seconds(30)};
    // A watch that ends sooner and has brought nothing has failed.
    std::chrono::milliseconds short_watch{1'000};
  };

  // `connection` outlives this.
  Reflector(Connection& connection, Scope scope, const Timing& timing, Listener listener,
            Options options);

  // Blocks until told to stop. Once.
  void Run(const std::stop_token& stop);

 private:
  // How to go on after a watch.
  enum class Next { kWatch, kWatchLater, kList, kListLater };

  // False: it failed.
  bool List(const std::stop_token& stop);
  Next Watch(const std::stop_token& stop);
  Next AfterFailure(const Status& failure, Duration lasted) const;
  void Deliver(WatchEvent event);
  void ReportTrouble(const Status& status) const;

  const Scope scope_;
  const Timing timing_;
  const Listener listener_;
  const Options options_;
  Client client_;  // of one try: the waiting is done here
  Backoff backoff_;
  std::string version_;  // of the last list or event
  Time listed_at_;       // when the last list succeeded
};

}  // namespace edl::kube
