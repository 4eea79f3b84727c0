#include "backend/testing/fake_backend.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <gtest/gtest.h>

#include "backend/exit_cause.h"
#include "base/testing/await.h"

namespace edl::backend {

using job::ReplicaEvent;

FakeBackend::FakeBackend(Delivery delivery) : delivery_(delivery) {
  if (delivery_ == Delivery::kByThread) dispatcher_.emplace();
}

FakeBackend::~FakeBackend() {
  const MutexLock lock(mutex_);
  ending_ = true;
  changed_.NotifyAll();
}

Status FakeBackend::Launch(const job::ReplicaSpec& spec) {
  std::function<void(const job::ReplicaSpec&)> on_launch;
  {
    const MutexLock lock(mutex_);
    if (!refusal_.ok()) return refusal_;
    if (replicas_.contains(spec.name)) return Ok();
    Replica& replica = replicas_[spec.name];
    replica.spec = spec;
    launch_order_.push_back(spec.name);
    Notify(replica, {.kind = ReplicaEvent::Kind::kPending, .reason = held_.value_or("starting")});
    if (!held_.has_value()) Run(replica);
    on_launch = on_launch_;
  }
  if (on_launch) on_launch(spec);
  return Ok();
}

Status FakeBackend::Stop(const std::string& name, std::chrono::milliseconds /*grace*/) {
  {
    const MutexLock lock(mutex_);
    const auto found = replicas_.find(name);
    if (found == replicas_.end() || found->second.last.kind == ReplicaEvent::Kind::kExited) {
      return Ok();
    }
    stopped_.push_back(name);
    if (on_stop_ == OnStop::kGoesOn) return Ok();
  }
  // NotFound means that another thread has ended it in the meantime.
  const Status ended = Exit(name, CauseOfSignal(SIGTERM));
  return ended.code() == Code::kNotFound ? Ok() : ended;
}

void FakeBackend::Watch(std::function<void(const ReplicaEvent&)> on_event) {
  const MutexLock lock(mutex_);
  std::vector<ReplicaEvent> first;
  for (const std::string& name : launch_order_) {
    const Replica& replica = replicas_.at(name);
    if (!replica.acknowledged) first.push_back(replica.last);
  }
  first.push_back({.kind = ReplicaEvent::Kind::kSynced});
  if (dispatcher_.has_value()) return dispatcher_->Watch(std::move(on_event), std::move(first));
  watcher_ = std::move(on_event);
  undelivered_.assign(first.begin(), first.end());
}

Status FakeBackend::Acknowledge(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = replicas_.find(name);
  if (found == replicas_.end()) return Ok();
  const bool exited = found->second.last.kind == ReplicaEvent::Kind::kExited;
  if (exited) found->second.acknowledged = true;
  return Ok();
}

Result<LogPiece> FakeBackend::Logs(const std::string& name, int64_t offset, int64_t at_most) {
  const MutexLock lock(mutex_);
  if (held_logs_.contains(name)) {
    logs_blocked_ = true;
    changed_.NotifyAll();
  }
  while (held_logs_.contains(name) && !ending_) changed_.Wait(mutex_);
  const auto found = replicas_.find(name);
  if (found == replicas_.end()) return NotFound("replica {} does not exist", name);
  const std::string& output = found->second.output;
  const auto size = static_cast<int64_t>(output.size());
  const int64_t from = std::clamp<int64_t>(offset < 0 ? size + offset : offset, 0, size);
  const int64_t count = std::clamp<int64_t>(at_most, 0, size - from);
  return LogPiece{.text = output.substr(static_cast<size_t>(from), static_cast<size_t>(count)),
                  .next_offset = from + count};
}

Result<std::string> FakeBackend::AddressOf(job::Role role, int index) {
  const MutexLock lock(mutex_);
  const int next = 20000 + static_cast<int>(ports_.size());
  const int port = ports_.try_emplace({role, index}, next).first->second;
  return fmt::format("127.0.0.1:{}", port);
}

Status FakeBackend::Exit(const std::string& name, job::ExitCause cause) {
  const MutexLock lock(mutex_);
  const auto found = replicas_.find(name);
  if (found == replicas_.end() || found->second.last.kind == ReplicaEvent::Kind::kExited) {
    return NotFound("no replica {} is running", name);
  }
  Notify(found->second, {.kind = ReplicaEvent::Kind::kExited, .cause = std::move(cause)});
  return Ok();
}

void FakeBackend::Print(const std::string& name, std::string_view text) {
  const MutexLock lock(mutex_);
  const auto found = replicas_.find(name);
  if (found == replicas_.end()) {
    ADD_FAILURE() << "cannot print for replica " << name << ", which was not launched";
    return;
  }
  found->second.output += text;
}

void FakeBackend::HoldLaunches(std::string reason) {
  const MutexLock lock(mutex_);
  held_ = std::move(reason);
}

void FakeBackend::ReleaseLaunches() {
  const MutexLock lock(mutex_);
  held_.reset();
  for (const std::string& name : launch_order_) {
    Replica& replica = replicas_.at(name);
    if (replica.last.kind == ReplicaEvent::Kind::kPending) Run(replica);
  }
}

void FakeBackend::RefuseLaunches(Status status) {
  const MutexLock lock(mutex_);
  refusal_ = std::move(status);
}

void FakeBackend::HoldLogs(const std::string& name) {
  const MutexLock lock(mutex_);
  held_logs_.insert(name);
  logs_blocked_ = false;
}

void FakeBackend::ReleaseLogs() {
  {
    const MutexLock lock(mutex_);
    held_logs_.clear();
  }
  changed_.NotifyAll();
}

void FakeBackend::AwaitBlockedLogs() {
  const MutexLock lock(mutex_);
  const Status blocked = Await(mutex_, changed_, "a call of Logs that HoldLogs() blocks",
                               [&]() REQUIRES(mutex_) { return logs_blocked_; });
  if (!blocked.ok()) ADD_FAILURE() << blocked.message();
}

void FakeBackend::SetOnStop(OnStop on_stop) {
  const MutexLock lock(mutex_);
  on_stop_ = on_stop;
}

void FakeBackend::SetOnLaunch(std::function<void(const job::ReplicaSpec&)> on_launch) {
  const MutexLock lock(mutex_);
  on_launch_ = std::move(on_launch);
}

bool FakeBackend::DeliverOne() {
  std::function<void(const ReplicaEvent&)> watcher;
  ReplicaEvent event;
  {
    const MutexLock lock(mutex_);
    CHECK(delivery_ == Delivery::kByDeliver, "Deliver needs Delivery::kByDeliver");
    if (undelivered_.empty() || !watcher_) return false;
    watcher = watcher_;
    event = std::move(undelivered_.front());
    undelivered_.pop_front();
  }
  watcher(event);
  return true;
}

void FakeBackend::Deliver() {
  while (DeliverOne()) {
  }
}

std::vector<job::ReplicaSpec> FakeBackend::Launched() const {
  const MutexLock lock(mutex_);
  std::vector<job::ReplicaSpec> specs;
  for (const std::string& name : launch_order_) specs.push_back(replicas_.at(name).spec);
  return specs;
}

std::vector<std::string> FakeBackend::Stopped() const {
  const MutexLock lock(mutex_);
  return stopped_;
}

std::vector<std::string> FakeBackend::Running() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const std::string& name : launch_order_) {
    if (replicas_.at(name).last.kind == ReplicaEvent::Kind::kRunning) names.push_back(name);
  }
  return names;
}

std::vector<std::string> FakeBackend::Unacknowledged() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const std::string& name : launch_order_) {
    const Replica& replica = replicas_.at(name);
    const bool exited = replica.last.kind == ReplicaEvent::Kind::kExited;
    if (exited && !replica.acknowledged) names.push_back(name);
  }
  return names;
}

void FakeBackend::Notify(Replica& replica, ReplicaEvent event) {
  event.name = replica.spec.name;
  replica.last = std::move(event);
  if (dispatcher_.has_value()) return dispatcher_->Notify(replica.last);
  if (watcher_) undelivered_.push_back(replica.last);
}

void FakeBackend::Run(Replica& replica) {
  Notify(replica, {.kind = ReplicaEvent::Kind::kRunning, .process_id = next_process_id_++});
}

}  // namespace edl::backend
