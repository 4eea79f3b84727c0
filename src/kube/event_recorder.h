#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/rate_limit.h"
#include "kube/timing.h"

namespace edl::kube {

enum class EventType { kNormal, kWarning };

// Records Kubernetes events about objects, which `kubectl describe` shows. A repeated event
// increments the count of the first one. Events are best effort: they are dropped when an object
// has too many of them, when too many are queued, and when the server rejects them.
//
// Thread-safe. Record may be called on any thread; the thread in Run sends the events.
class EventRecorder {
 public:
  struct Options {
    std::string component;  // "elasticdl-master"
    std::string instance;   // the name of the pod
    // Rate limit per object: `burst` events, then one per `refill`.
    int burst = 25;
    std::chrono::seconds refill{300};
    size_t max_queued = 1000;
    // Events whose reason begins with one of these texts have a limit of their own, so that many of
    // them do not displace the others.
    std::vector<std::string> routine = {};
  };

  // `connection` outlives this.
  EventRecorder(Connection& connection, const Timing& timing, Options options);

  // Returns whether the event will be sent; if not, it is dropped. Never blocks. REQUIRES: `about`
  // has a kind, a name and a uid.
  bool Record(const Object& about, EventType type, const std::string& reason,
              const std::string& message);
  // Blocks, and sends events until `stop` is requested.
  void Run(const std::stop_token& stop);
  // Sends the events that are queued now.
  void Flush(const std::stop_token& stop = {});

 private:
  // Two events with the same key are the same event.
  struct Key {
    std::string uid;
    EventType type = EventType::kNormal;
    std::string reason;
    std::string message;

    auto operator<=>(const Key&) const = default;
  };
  struct Queued {
    Key key;
    nlohmann::json about;  // a reference to the object
    int64_t count = 1;
    WallTime first;
    WallTime last;
  };
  struct Sent {
    ObjectKey event;
    int64_t count = 0;
  };

  void Send(const Queued& queued, const std::stop_token& stop) REQUIRES(sending_);
  Status Repeat(Sent& sent, const Queued& queued, const std::stop_token& stop);
  Result<Sent> Create(const Queued& queued, const std::stop_token& stop) REQUIRES(sending_);
  bool IsRoutine(const std::string& reason) const;
  bool TooMany(const Key& key) REQUIRES(mutex_);

  const Options options_;
  const Timing timing_;
  Client client_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Queued> queue_ GUARDED_BY(mutex_);
  // By the uid of the object and whether the events are routine.
  std::map<std::pair<std::string, bool>, std::unique_ptr<RateLimit>> limits_ GUARDED_BY(mutex_);

  Mutex sending_;  // taken before mutex_
  std::map<Key, Sent> sent_ GUARDED_BY(sending_);
  uint64_t number_ GUARDED_BY(sending_) = 0;
};

}  // namespace edl::kube
