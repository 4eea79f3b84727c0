#include "backend/attached_backend.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "backend/exit_cause.h"

namespace edl::backend {
namespace {

using EventKind = job::ReplicaEvent::Kind;

// A process kills its worker at the end of the grace period, and then has this time to report it.
constexpr std::chrono::milliseconds kReportTime{500};
constexpr char kWaits[] = "waits for a process that attaches as a worker";

job::ExitCause KilledBecause(std::string why) {
  return {.kind = job::ExitCause::Kind::kKilled, .message = std::move(why)};
}

}  // namespace

AttachedBackend::AttachedBackend(std::unique_ptr<Backend> others)
    : timer_([this] { EnforceGrace(); }), others_(std::move(others)) {}

AttachedBackend::~AttachedBackend() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  timer_.join();
}

void AttachedBackend::SetOnNotice(std::function<void(const Notice&)> on_notice) {
  const MutexLock lock(mutex_);
  on_notice_ = std::move(on_notice);
}

size_t AttachedBackend::Attach(AttachmentId attachment) {
  const MutexLock lock(mutex_);
  waiting_.push_back(attachment);
  Assign();
  return waiting_.size();
}

void AttachedBackend::Disconnect(AttachmentId attachment) {
  const MutexLock lock(mutex_);
  std::erase(waiting_, attachment);
  Worker* worker = WorkerOf(attachment);
  if (worker != nullptr) {
    End(*worker, KilledBecause("the process that had attached as this worker disconnected"));
  }
}

void AttachedBackend::ReportExit(const std::string& worker, const job::ExitCause& cause) {
  const MutexLock lock(mutex_);
  const auto found = workers_.find(worker);
  if (found != workers_.end() && found->second.attachment) End(found->second, cause);
}

bool AttachedBackend::HasWorker(const std::string& name) {
  const MutexLock lock(mutex_);
  return workers_.contains(name) || acknowledged_.contains(name);
}

Status AttachedBackend::Launch(const job::ReplicaSpec& spec) {
  if (spec.role != job::Role::kWorker) return others_->Launch(spec);
  const MutexLock lock(mutex_);
  if (acknowledged_.contains(spec.name)) return Ok();
  const auto [place, added] = workers_.try_emplace(spec.name, Worker{.spec = spec});
  if (!added) return Ok();
  pending_.push_back(spec.name);
  Notify(place->second, {.kind = EventKind::kPending, .reason = kWaits});
  Assign();
  return Ok();
}

Status AttachedBackend::Stop(const std::string& name, std::chrono::milliseconds grace) {
  {
    const MutexLock lock(mutex_);
    const auto found = workers_.find(name);
    if (found != workers_.end()) {
      Worker& worker = found->second;
      if (worker.last.kind == EventKind::kPending) {
        End(worker, KilledBecause("stopped before a process attached"));
      } else if (worker.attachment) {
        const bool first = !worker.end_by;
        const SteadyTime end_by = std::chrono::steady_clock::now() + grace + kReportTime;
        worker.end_by = first ? end_by : std::min(end_by, *worker.end_by);
        changed_.NotifyAll();
        if (first) on_notice_({*worker.attachment, Notice::Kind::kStop, worker.spec, grace});
      }
      return Ok();
    }
    if (acknowledged_.contains(name)) return Ok();
  }
  return others_->Stop(name, grace);
}

void AttachedBackend::Watch(std::function<void(const job::ReplicaEvent&)> on_event) {
  uint64_t watch = 0;
  {
    const MutexLock lock(mutex_);
    watch = ++watch_;
    std::vector<job::ReplicaEvent> states;
    for (const auto& [name, worker] : workers_) states.push_back(worker.last);
    dispatcher_.Watch(std::move(on_event), std::move(states));
  }
  // kSynced comes from the other backend, after the states of all its replicas.
  others_->Watch([this, watch](const job::ReplicaEvent& event) {
    const MutexLock lock(mutex_);
    if (watch == watch_) dispatcher_.Notify(event);
  });
}

Status AttachedBackend::Acknowledge(const std::string& name) {
  {
    const MutexLock lock(mutex_);
    if (acknowledged_.contains(name)) return Ok();
    const auto found = workers_.find(name);
    if (found != workers_.end()) {
      if (found->second.last.kind == EventKind::kExited) {
        acknowledged_.insert(name);
        workers_.erase(found);
      }
      return Ok();
    }
  }
  return others_->Acknowledge(name);
}

Result<LogPiece> AttachedBackend::Logs(const std::string& name, int64_t offset, int64_t at_most) {
  if (HasWorker(name)) {
    return FailedPrecondition(
        "{} attached to the job: its output is in the terminal or the container in which its user "
        "started it",
        name);
  }
  return others_->Logs(name, offset, at_most);
}

Result<std::string> AttachedBackend::AddressOf(job::Role role, int index) {
  return others_->AddressOf(role, index);
}

void AttachedBackend::Assign() {
  while (!pending_.empty() && !waiting_.empty()) {
    Worker& worker = workers_.at(pending_.front());
    const AttachmentId attachment = waiting_.front();
    pending_.pop_front();
    waiting_.pop_front();
    worker.attachment = attachment;
    Notify(worker, {.kind = EventKind::kRunning});
    on_notice_({attachment, Notice::Kind::kRun, worker.spec, {}});
  }
}

void AttachedBackend::Notify(Worker& worker, job::ReplicaEvent event) {
  event.name = worker.spec.name;
  worker.last = event;
  dispatcher_.Notify(std::move(event));
}

void AttachedBackend::End(Worker& worker, const job::ExitCause& cause) {
  std::erase(pending_, worker.spec.name);
  worker.attachment.reset();
  worker.end_by.reset();
  Notify(worker, {.kind = EventKind::kExited, .cause = cause});
}

AttachedBackend::Worker* AttachedBackend::WorkerOf(AttachmentId attachment) {
  for (auto& [name, worker] : workers_) {
    if (worker.attachment == attachment) return &worker;
  }
  return nullptr;
}

void AttachedBackend::EnforceGrace() {
  const MutexLock lock(mutex_);
  while (!ending_) {
    // Not an injected clock: processes are real, and a condition variable waits in real time.
    const SteadyTime now = std::chrono::steady_clock::now();
    std::optional<SteadyTime> next;
    for (auto& [name, worker] : workers_) {
      if (!worker.end_by) continue;
      if (now < *worker.end_by) {
        next = next ? std::min(*next, *worker.end_by) : *worker.end_by;
        continue;
      }
      on_notice_({*worker.attachment, Notice::Kind::kEnded, worker.spec, {}});
      End(worker, CauseOfSignal(SIGKILL));
    }
    if (next) {
      changed_.WaitUntil(mutex_, *next);
    } else {
      changed_.Wait(mutex_);
    }
  }
}

}  // namespace edl::backend
