#include "master/loop.h"

#include <utility>

namespace edl::master {

void Loop::Post(std::function<void(Core&)> work) {
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    if (ended_) return;
    wake = inbox_.empty();
    inbox_.push_back(std::move(work));
  }
  if (wake) posted_.NotifyOne();
}

void Loop::Round(std::vector<std::function<void(Core&)>>& work) {
  core_.Advance(clock_.Now(), clock_.WallNow());
  for (auto& item : work) item(core_);
  work.clear();
  const Time now = clock_.Now();
  if (now - last_tick_ < kTick) return;
  last_tick_ = now;
  core_.Tick();
  std::vector<std::string> scan;
  for (const auto& [name, replica] : core_.keeper().replicas()) {
    const job::Role role = replica.row.replica.role;
    if (replica.row.state == job::ReplicaState::kRunning &&
        (role == job::Role::kChief || role == job::Role::kEvaluator)) {
      scan.push_back(name);
    }
  }
  outlets_.scan(std::move(scan));
}

void Loop::ShowView() {
  const Time now = clock_.Now();
  const bool changed = core_.state() != shown_state_ || shown_ == 0;
  if (!changed && (now - last_view_ < std::chrono::seconds(1) || core_.view_number() == shown_)) {
    return;
  }
  shown_ = core_.view_number();
  shown_state_ = core_.state();
  last_view_ = now;
  outlets_.view(core_.View());
}

Status Loop::Run() {
  std::vector<std::function<void(Core&)>> work;
  while (true) {
    {
      const MutexLock lock(mutex_);
      const auto wake_at = std::chrono::steady_clock::now() + kTick;
      while (inbox_.empty()) {
        if (!posted_.WaitUntil(mutex_, wake_at)) break;
      }
      std::swap(work, inbox_);
    }
    Round(work);
    Status committed = core_.Commit();
    if (committed.ok()) {
      if (std::vector<Command> commands = core_.TakeCommands(); !commands.empty()) {
        outlets_.commands(std::move(commands));
      }
      ShowView();
      if (!job::IsFinal(core_.state())) continue;
    }
    const MutexLock lock(mutex_);
    ended_ = true;
    inbox_.clear();
    return committed;
  }
}

}  // namespace edl::master
