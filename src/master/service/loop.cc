#include "master/service/loop.h"

#include <utility>

#include "base/log.h"
#include "base/process_use.h"

namespace edl::master {

void Loop::Wake::On(Core&, bool) {
  const MutexLock lock(loop_.mutex_);
  loop_.waking_ = false;
}

void Loop::Post(std::function<void(Core&)> work) {
  const MutexLock lock(mutex_);
  if (ended_) return;
  inbox_.push_back(std::move(work));
  if (queue_ == nullptr || waking_) return;
  waking_ = true;
  alarm_.Set(queue_, gpr_now(GPR_CLOCK_MONOTONIC), &wake_);
}

void Loop::TakePosted() {
  std::vector<std::function<void(Core&)>> work;
  {
    const MutexLock lock(mutex_);
    std::swap(work, inbox_);
  }
  for (auto& item : work) item(core_);
}

void Loop::TakeEvents(grpc::CompletionQueue& queue, std::chrono::milliseconds wait) {
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&](gpr_timespec until) {
    return queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT;
  };
  const gpr_timespec timeout = gpr_time_from_millis(wait.count(), GPR_TIMESPAN);
  bool found = next(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), timeout));
  round_began_ = clock_.Now();
  core_.Advance(round_began_, clock_.WallNow());
  // A time in the past, because gRPC rounds the present up to the next millisecond.
  const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  int taken = 0;
  int empty = 0;
  while (true) {
    if (found) static_cast<Event*>(tag)->On(core_, ok);
    taken += found ? 1 : 0;
    empty = found ? 0 : empty + 1;
    if (taken == kMostEvents || empty == kEmptyPolls) return;
    found = next(at_once);
  }
}

void Loop::Tick() {
  const Time now = clock_.Now();
  if (now - last_tick_ < kTick) return;
  last_tick_ = now;
  core_.Tick();
  if (now - last_scan_ < kScan) return;
  last_scan_ = now;
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
  if (!changed && now - last_view_ < std::chrono::seconds(1)) return;
  const int64_t version = core_.dispatcher().counters().version;
  const bool news = changed || core_.view_number() != shown_;
  if (!news && (outlets_.progress == nullptr || version == shown_version_)) return;
  shown_ = core_.view_number();
  shown_state_ = core_.state();
  shown_version_ = version;
  last_view_ = now;
  (news ? outlets_.view : outlets_.progress)(core_.View());
}

void Loop::NoteRound(Duration took) {
  rounds_.Add(took);
  constexpr std::chrono::milliseconds kWorthNoting{20};
  if (took <= longest_round_ || took < kWorthNoting) return;
  longest_round_ = took;
  LOG_INFO("the longest round of the loop so far took {} ms",
           std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
}

Status Loop::Commit() {
  if (core_.paused() && clock_.Now() < next_commit_) return Ok();
  const Time began = clock_.Now();
  Status committed = core_.Commit(kMostAnswers);
  if (core_.last_commit_wrote()) commits_.Add(clock_.Now() - began);
  if (committed.ok()) {
    if (core_.paused()) LOG_INFO("the ledger can be written again: the job continues");
    core_.set_paused("");
    return Ok();
  }
  if (!core_.may_commit_again()) return committed;
  next_commit_ = clock_.Now() + kFullDiskRetry;
  if (core_.paused()) return Ok();
  LOG_WARNING("the ledger cannot be written: {}; the job pauses until there is space on the disk",
              committed.message());
  core_.set_paused("the ledger cannot be written, " + committed.message() +
                   "; the job continues when there is space on the disk");
  outlets_.view(core_.View());
  return Ok();
}

Status Loop::Run(grpc::CompletionQueue& queue) {
  {
    const MutexLock lock(mutex_);
    queue_ = &queue;
  }
  core_.set_process_use(ReadProcessUse);
  std::chrono::milliseconds wait{0};  // work was posted before Run
  while (true) {
    TakeEvents(queue, wait);
    TakePosted();
    Tick();
    if (outlets_.fence != nullptr) outlets_.fence();
    Status committed = Commit();
    wait = core_.unsent_answers() > 0 ? std::chrono::milliseconds(0) : kTick;
    if (committed.ok() && core_.paused()) continue;
    if (committed.ok()) {
      if (std::vector<Command> commands = core_.TakeCommands(); !commands.empty()) {
        outlets_.commands(std::move(commands));
      }
      if (outlets_.server_commands != nullptr) {
        outlets_.server_commands(core_.TakeServerCommands());
      }
      ShowView();
      NoteRound(clock_.Now() - round_began_);
      if (!job::IsFinal(core_.state())) continue;
      core_.SendAnswers();
    }
    const MutexLock lock(mutex_);
    ended_ = true;
    queue_ = nullptr;
    inbox_.clear();
    return committed;
  }
}

}  // namespace edl::master
