#pragma once

#include <functional>
#include <string>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/core.h"

namespace edl::master {

// The loop of the master's only thread with state. Each round takes events from the completion
// queue of the server and work that other threads posted, lets the core decide, commits once for
// all of it, and then sends answers and commands.
//
// Thread-safe: Post. Confined to one thread: Run.
class Loop {
 public:
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::milliseconds kScan{500};  // of replicas whose output is read
  // The most events before a commit, because the first caller waits for it.
  static constexpr int kMostEvents = 1024;
  // A round ends after so many polls in a row without an event. One is not enough: a poll reads one
  // socket, which need not complete an operation, so under load each call would get its own commit.
  static constexpr int kEmptyPolls = 4;
  // The most answers of one round. The others are sent in the next rounds, so that other calls are
  // handled in between.
  static constexpr size_t kMostAnswers = 512;

  // What each tag on the completion queue points to: an operation of a call has ended.
  class Event {
   public:
    virtual void On(Core& core, bool ok) = 0;

   protected:
    ~Event() = default;
  };

  struct Outlets {
    // Commands that are durable now. Must not block.
    std::function<void(std::vector<Command>)> commands;
    // The same for commands to parameter servers. May be empty.
    std::function<void(std::vector<ServerCommand>)> server_commands = {};
    // A view to show: at every change of state, otherwise at most each second.
    std::function<void(const job::JobView&)> view;
    // The same when only the number of done records changed, at most each second: for readers that
    // cannot call the master. May be empty.
    std::function<void(const job::JobView&)> progress = {};
    // Called before each commit: blocks until this process may write to the ledger. May be empty.
    std::function<void()> fence = {};
    // Names of replicas whose output has to be read now.
    std::function<void(std::vector<std::string>)> scan;
  };

  Loop(Core& core, const Clock& clock, Outlets outlets)
      : core_(core), clock_(clock), outlets_(std::move(outlets)), wake_(*this) {}

  // Runs `work` on the loop, in order. Ignored after the loop has ended.
  void Post(std::function<void(Core&)> work);

  // How long rounds and commits took. Thread-safe.
  const Histogram& rounds() const { return rounds_; }
  const Histogram& commits() const { return commits_; }

  // Runs until the job is in a final state or the ledger fails. Every tag on `queue` is an Event.
  // REQUIRES: Core::Load has succeeded.
  Status Run(grpc::CompletionQueue& queue);

 private:
  class Wake final : public Event {
   public:
    explicit Wake(Loop& loop) : loop_(loop) {}
    void On(Core& core, bool ok) override;

   private:
    Loop& loop_;
  };

  void TakeEvents(grpc::CompletionQueue& queue, std::chrono::milliseconds wait);
  void TakePosted();
  void Tick();
  void ShowView();
  // Counts the round, and logs it if it is longer than all before: all callers waited for it.
  void NoteRound(Duration took);
  // Commits. While the disk is full, tries again each kFullDiskRetry and answers no call.
  Status Commit();

  Core& core_;
  const Clock& clock_;
  const Outlets outlets_;
  static constexpr std::chrono::milliseconds kFullDiskRetry{500};

  Time last_tick_;
  Time last_scan_;
  Time next_commit_;  // while the disk is full
  Time last_view_;
  Time round_began_;
  Duration longest_round_{0};
  Histogram rounds_;
  Histogram commits_;
  uint64_t shown_ = 0;
  int64_t shown_version_ = 0;
  job::JobState shown_state_ = job::JobState::kStarting;
  Wake wake_;

  Mutex mutex_;
  std::vector<std::function<void(Core&)>> inbox_ GUARDED_BY(mutex_);
  grpc::CompletionQueue* queue_ GUARDED_BY(mutex_) = nullptr;  // while Run runs
  grpc::Alarm alarm_ GUARDED_BY(mutex_);
  bool waking_ GUARDED_BY(mutex_) = false;  // the alarm is set and has not reached the loop
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace edl::master
