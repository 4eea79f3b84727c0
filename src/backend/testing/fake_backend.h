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

// A backend in memory. Replicas run until the test ends them. It passes the conformance suite.
//
//   FakeBackend backend;
//   ... the code under test watches and launches ...
//   backend.Exit("iris-edljob-worker-0", CauseOfSignal(SIGKILL));
//
// Thread-safe.
class FakeBackend final : public Backend {
 public:
  // Who calls the watcher: a thread of the backend, like real backends, or Deliver(), for tests
  // under virtual time in which nothing may happen by itself.
  enum class Delivery { kByThread, kByDeliver };
  // What a stopped replica does: it dies of SIGTERM immediately, or runs until the test ends it.
  enum class OnStop { kDies, kGoesOn };

  explicit FakeBackend(Delivery delivery = Delivery::kByThread);
  ~FakeBackend() override;

  Status Launch(const job::ReplicaSpec& spec) override;
  Status Stop(const std::string& name, std::chrono::milliseconds grace) override;
  void Watch(std::function<void(const job::ReplicaEvent&)> on_event) override;
  Status Acknowledge(const std::string& name) override;
  Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) override;
  Result<std::string> AddressOf(job::Role role, int index) override;

  // Ends a pending or running replica. NotFound: there is no such replica.
  Status Exit(const std::string& name, job::ExitCause cause);
  // Appends to the output of a replica, which must exist.
  void Print(const std::string& name, std::string_view text);

  // From now on, launched replicas stay pending with `reason`, until ReleaseLaunches() starts all
  // of them.
  void HoldLaunches(std::string reason);
  void ReleaseLaunches();
  // Makes Launch return `status` and start nothing, until it is called with Ok.
  void RefuseLaunches(Status status);
  // Makes Logs of `name` block until ReleaseLogs(), as for an unreachable node.
  void HoldLogs(const std::string& name);
  void ReleaseLogs();
  // Waits until a call of Logs blocks because of HoldLogs(). Fails the test after a minute.
  void AwaitBlockedLogs();
  void SetOnStop(OnStop on_stop);
  // Called after each launch, without the lock: tests simulate replicas here.
  void SetOnLaunch(std::function<void(const job::ReplicaSpec&)> on_launch);

  // With Delivery::kByDeliver: calls the watcher for the oldest event, or for all events including
  // those that the calls cause. DeliverOne returns false if there was no event.
  bool DeliverOne();
  void Deliver();

  // Every spec ever launched, in order.
  std::vector<job::ReplicaSpec> Launched() const;
  // The names of Stop calls that found a live replica, in order.
  std::vector<std::string> Stopped() const;
  std::vector<std::string> Running() const;
  // Exits that were not acknowledged.
  std::vector<std::string> Unacknowledged() const;

 private:
  struct Replica {
    job::ReplicaSpec spec;
    job::ReplicaEvent last;  // for a new watcher
    bool acknowledged = false;
    std::string output;
  };

  void Notify(Replica& replica, job::ReplicaEvent event) REQUIRES(mutex_);
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
  std::optional<std::string> held_ GUARDED_BY(mutex_);  // the reason why launches are held
  Status refusal_ GUARDED_BY(mutex_);
  std::set<std::string> held_logs_ GUARDED_BY(mutex_);
  bool logs_blocked_ GUARDED_BY(mutex_) = false;
  OnStop on_stop_ GUARDED_BY(mutex_) = OnStop::kDies;
  int64_t next_process_id_ GUARDED_BY(mutex_) = 1000;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::optional<EventDispatcher> dispatcher_;  // Delivery::kByThread only
};

}  // namespace edl::backend
