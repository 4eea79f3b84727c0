#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/event_dispatcher.h"
#include "base/mutex.h"

namespace edl::backend {

// A backend in memory. Replicas run until the test ends them. Passes the conformance suite.
//
//   FakeBackend backend;
//   ... the code under test watches and launches ...
//   backend.Exit("iris-edljob-worker-0", CauseOfSignal(SIGKILL));
//
// Thread-safe.
class FakeBackend final : public Backend {
 public:
  // Who calls the watcher: a thread of the backend, as real ones do, or Deliver(), for tests under
  // virtual time in which nothing may happen by itself.
  enum class Delivery { kByThread, kByDeliver };
  // What a replica does when it is stopped: it dies of SIGTERM at once, or the test ends it.
  enum class OnStop { kDies, kGoesOn };

  explicit FakeBackend(Delivery delivery = Delivery::kByThread);
  ~FakeBackend() override;

  Status Launch(const job::ReplicaSpec& spec) override;
  Status Stop(const std::string& name, std::chrono::milliseconds grace) override;
  void Watch(std::function<void(const job::ReplicaEvent&)> on_event) override;
  Status Acknowledge(const std::string& name) override;
  Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) override;
  Result<std::string> AddressOf(job::Role role, int index) override;

  // Ends a replica that is pending or running. NotFound: there is none of that name.
  Status Exit(const std::string& name, job::ExitCause cause);
  // Appends to a replica's output.
  void Print(const std::string& name, std::string_view text);

  // Launches from now on stay pending with `reason`, until ReleaseLaunches() runs them all.
  void HoldLaunches(std::string reason);
  void ReleaseLaunches();
  // Launch answers `status` and starts nothing while it is not ok.
  void RefuseLaunches(Status status);
  // Logs of `name` answers nobody until ReleaseLogs(), as a node does that is gone.
  void HoldLogs(const std::string& name);
  void ReleaseLogs();
  // Waits until somebody waits for what HoldLogs() holds.
  void AwaitLogsAsked();
  void SetOnStop(OnStop on_stop);
  // Called after each launch, outside of the lock: where a test gives replicas a life of their own.
  void SetOnLaunch(std::function<void(const job::ReplicaSpec&)> on_launch);

  // With Delivery::kByDeliver: calls the watcher for the oldest event, or for all there are, those
  // that come of it included. False: there was none.
  bool DeliverOne();
  void Deliver();

  // Every spec ever launched, in order.
  std::vector<job::ReplicaSpec> Launched() const;
  // Names of Stop calls that found a live replica, in order.
  std::vector<std::string> Stopped() const;
  std::vector<std::string> Running() const;
  // Exits that nobody has acknowledged.
  std::vector<std::string> Unacknowledged() const;

 private:
  struct Replica {
    job::ReplicaSpec spec;
    job::ReplicaEvent last;  // what a new watcher is told
    bool acknowledged = false;
    std::string output;
  };

  void Tell(Replica& replica, job::ReplicaEvent event) REQUIRES(mutex_);
  void Run(Replica& replica) REQUIRES(mutex_);

  const Delivery delivery_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Replica> replicas_ GUARDED_BY(mutex_);
  std::vector<std::string> launch_order_ GUARDED_BY(mutex_);
  std::vector<std::string> stopped_ GUARDED_BY(mutex_);
  std::map<std::pair<job::Role, int>, int> ports_ GUARDED_BY(mutex_);
  std::function<void(const job::ReplicaEvent&)> watcher_ GUARDED_BY(mutex_);
  std::function<void(const job::ReplicaSpec&)> on_launch_ GUARDED_BY(mutex_);
  std::deque<job::ReplicaEvent> undelivered_ GUARDED_BY(mutex_);  // Delivery::kByDeliver only
  std::optional<std::string> held_ GUARDED_BY(mutex_);            // the reason why launches wait
  Status refusal_ GUARDED_BY(mutex_);
  std::set<std::string> held_logs_ GUARDED_BY(mutex_);
  bool logs_asked_ GUARDED_BY(mutex_) = false;
  OnStop on_stop_ GUARDED_BY(mutex_) = OnStop::kDies;
  int64_t next_process_id_ GUARDED_BY(mutex_) = 1000;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::optional<EventDispatcher> dispatcher_;  // Delivery::kByThread only
};

}  // namespace edl::backend
