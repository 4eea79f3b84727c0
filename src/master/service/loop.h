#pragma once

#include <functional>
#include <string>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/core.h"

namespace edl::master {

// The one thread of a master's state, and of its calls: takes what came off the queue of the server
// and what others post, lets the core decide, commits once for all of it, and lets answers and
// commands go.
//
// Post is thread-safe; Run belongs to the thread that calls it.
class Loop {
 public:
  static constexpr std::chrono::milliseconds kTick{50};
  static constexpr std::chrono::milliseconds kScan{500};  // of replicas whose output is read
  // What is taken in before a commit, at most: the first caller is waiting.
  static constexpr int kMostEvents = 1024;
  // A poll reads one socket, which need not complete an operation: a round ends after so many polls
  // in a row without an event. With fewer, each call gets a commit of its own under load.
  static constexpr int kEmptyPolls = 4;
  // How many answers leave in one round at most. The others leave in the next rounds, so that other
  // calls are handled in between.
  static constexpr size_t kMostAnswers = 512;

  // What a tag on the queue is: the next thing that happened to a call.
  class Event {
   public:
    virtual void On(Core& core, bool ok) = 0;

   protected:
    ~Event() = default;
  };

  struct Outlets {
    // Commands that are durable now. Must not block.
    std::function<void(std::vector<Command>)> commands;
    // The same of those for parameter servers. May be empty.
    std::function<void(std::vector<ServerCommand>)> server_commands = {};
    // A view worth showing: on every change of state, else at most each second.
    std::function<void(const job::JobView&)> view;
    // The same while nothing changes but the records done, at most each second: for those who
    // cannot ask the master. May be empty.
    std::function<void(const job::JobView&)> progress = {};
    // Called before each commit: blocks until this process may write to the ledger. May be empty.
    std::function<void()> fence = {};
    // Replicas whose output is worth reading now.
    std::function<void(std::vector<std::string>)> scan;
  };

  Loop(Core& core, const Clock& clock, Outlets outlets)
      : core_(core), clock_(clock), outlets_(std::move(outlets)), wake_(*this) {}

  // Runs `work` on the loop, in order. Dropped once the loop has ended.
  void Post(std::function<void(Core&)> work);

  // Runs until the job is in a final state, or the ledger fails. Every tag on `queue` is an Event.
  // REQUIRES: Load went well.
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
  // A long round keeps all callers waiting.
  void NoteRound(Duration took);
  // Commits, unless the disk was full a moment ago. Nothing is answered until there is room.
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
  uint64_t shown_ = 0;
  int64_t shown_version_ = 0;
  job::JobState shown_state_ = job::JobState::kStarting;
  Wake wake_;

  Mutex mutex_;
  std::vector<std::function<void(Core&)>> inbox_ GUARDED_BY(mutex_);
  grpc::CompletionQueue* queue_ GUARDED_BY(mutex_) = nullptr;  // while Run runs
  grpc::Alarm alarm_ GUARDED_BY(mutex_);
  bool waking_ GUARDED_BY(mutex_) = false;  // the alarm is on its way through the queue
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace edl::master
