#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "backend/backend.h"
#include "backend/event_dispatcher.h"
#include "base/mutex.h"
#include "base/strong_id.h"

namespace edl::backend {

// A process that attaches. The caller of AttachedBackend::Attach chooses the number, and uses none
// twice.
using AttachmentId = StrongId<struct AttachmentIdTag, uint64_t>;

// A backend whose workers are processes that it did not start: they attach, and each becomes the
// worker that was launched first and has no process yet. Replicas of all other roles run at another
// backend.
//
// A worker is pending until a process attaches. It exits when that process reports its exit, or
// disconnects, or does not stop within the grace period.
//
// Thread-safe.
class AttachedBackend final : public Backend {
 public:
  // What the attached process has to do.
  struct Notice {
    enum class Kind {
      kRun,    // run the command of `worker`
      kStop,   // stop it within `grace`, and report its exit
      kEnded,  // the worker counts as exited: its process did not stop in time
    };
    AttachmentId attachment;
    Kind kind = Kind::kRun;
    job::ReplicaSpec worker;
    std::chrono::milliseconds grace{0};
  };

  // `others` runs the replicas of all other roles.
  explicit AttachedBackend(std::unique_ptr<Backend> others);
  ~AttachedBackend() override;

  // `on_notice` is called in order, on any thread, with a lock held: it must not block and must not
  // call the backend. Set it before the first Attach.
  void SetOnNotice(std::function<void(const Notice&)> on_notice);

  // A process wants to be a worker. It gets kRun now, or when a worker is launched. Returns how
  // many processes wait for a worker now, including this one; 0: it got one.
  size_t Attach(AttachmentId attachment);
  // The process has disconnected. Its worker counts as killed, unless it has exited.
  void Disconnect(AttachmentId attachment);
  // The process reports the exit of its worker. Does nothing if no such worker runs.
  void ReportExit(const std::string& worker, const job::ExitCause& cause);
  // True: this worker was launched here, or ran here.
  bool HasWorker(const std::string& name);

  Status Launch(const job::ReplicaSpec& spec) override;
  Status Stop(const std::string& name, std::chrono::milliseconds grace) override;
  Status Acknowledge(const std::string& name) override;
  void Watch(std::function<void(const job::ReplicaEvent&)> on_event) override;
  Result<std::string> AddressOf(job::Role role, int index) override;
  // FailedPrecondition for a worker: its output is where its user started it.
  Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) override;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  struct Worker {
    job::ReplicaSpec spec;
    job::ReplicaEvent last;                  // for a new watcher
    std::optional<AttachmentId> attachment;  // while it runs
    std::optional<SteadyTime> end_by;        // it is being stopped
  };

  // Gives launched workers to waiting processes, the oldest to the oldest.
  void Assign() REQUIRES(mutex_);
  void Notify(Worker& worker, job::ReplicaEvent event) REQUIRES(mutex_);
  void End(Worker& worker, const job::ExitCause& cause) REQUIRES(mutex_);
  // Null: the process has no worker.
  Worker* WorkerOf(AttachmentId attachment) REQUIRES(mutex_);
  // Ends workers whose grace period is over. Runs on a thread of its own.
  void EnforceGrace();

  Mutex mutex_;
  CondVar changed_;
  std::function<void(const Notice&)> on_notice_ GUARDED_BY(mutex_);
  std::map<std::string, Worker> workers_ GUARDED_BY(mutex_);  // until the exit is acknowledged
  std::set<std::string> acknowledged_ GUARDED_BY(mutex_);
  std::deque<std::string> pending_ GUARDED_BY(mutex_);   // workers without a process
  std::deque<AttachmentId> waiting_ GUARDED_BY(mutex_);  // processes without a worker
  uint64_t watch_ GUARDED_BY(mutex_) = 0;                // number of the last Watch
  bool ending_ GUARDED_BY(mutex_) = false;
  EventDispatcher dispatcher_;
  std::thread timer_;
  // Destroyed first, because its events use the members above.
  std::unique_ptr<Backend> others_;
};

}  // namespace edl::backend
