#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/rate_limit.h"
#include "kube/timing.h"

namespace edl::kube {

enum class EventType { kNormal, kWarning };

// Tells users what happened to an object, where `kubectl describe` shows it. What is said again is
// counted instead of said again, who says too much about one object is not heard, and what cannot
// be told is lost: nobody's work depends on it.
//
// Thread-safe. Record may be called from anywhere; what it says is sent by the thread in Run.
class EventRecorder {
 public:
  struct Options {
    std::string component;  // "elasticdl-master"
    std::string instance;   // which one: the pod's name
    // About one object: so many at once, then one in so long.
    int burst = 25;
    std::chrono::seconds refill{300};
    size_t most_waiting = 1000;
  };

  // `connection` outlives this.
  EventRecorder(Connection& connection, const Timing& timing, Options options);

  // `about` needs its kind, name and uid. Never blocks.
  void Record(const Object& about, EventType type, const std::string& reason,
              const std::string& message);
  // Blocks and sends until told to stop.
  void Run(const std::stop_token& stop);
  // Sends what waits now.
  void Flush(const std::stop_token& stop = {});

 private:
  // What makes two events the same.
  struct Key {
    std::string uid;
    EventType type = EventType::kNormal;
    std::string reason;
    std::string message;

    auto operator<=>(const Key&) const = default;
  };
  struct Waiting {
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

  void Send(const Waiting& waiting, const std::stop_token& stop) REQUIRES(sending_);
  Status Repeat(Sent& sent, const Waiting& waiting, const std::stop_token& stop);
  Result<Sent> Create(const Waiting& waiting, const std::stop_token& stop) REQUIRES(sending_);
  bool TooMany(const std::string& uid) REQUIRES(mutex_);

  const Options options_;
  const Timing timing_;
  Client client_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<RateLimit>> limits_ GUARDED_BY(mutex_);  // by uid

  Mutex sending_;  // taken before mutex_
  std::map<Key, Sent> sent_ GUARDED_BY(sending_);
  uint64_t number_ GUARDED_BY(sending_) = 0;
};

}  // namespace edl::kube
