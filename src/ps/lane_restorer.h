#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/status.h"
#include "checkpoint/checkpoint_files.h"
#include "ps/lane.h"

namespace edl::ps {

// Restores a lane while it goes on answering: a thread reads the parts of a checkpoint, and the
// lane's loop takes them one chunk at a time into a fresh lane that nobody sees before it is
// complete. Confined to the lane's loop.
class LaneRestorer {
 public:
  // All outlive it. `restored_bytes`, if any, is raised by what was read.
  LaneRestorer(EventLoop& lane_loop, checkpoint::CheckpointFiles files,
               std::atomic<uint64_t>* restored_bytes = nullptr);
  // Gives up what is under way and waits for the threads that read.
  ~LaneRestorer();

  using OnDone = std::function<void(Result<std::unique_ptr<Lane>>)>;
  // Restores `fresh` from those parts that have buckets of it. Another restore that is under way is
  // given up: its `on_done` gets Aborted. ResourceExhausted: too many that were given up still wait
  // for their storage.
  Status Begin(std::unique_ptr<Lane> fresh, std::vector<std::string> paths, bool with_marks,
               OnDone on_done);
  // Gives up the restore that is under way, if any. Its `on_done` is not called.
  void Cancel();
  bool running() const { return run_ != nullptr; }

 private:
  // What the reading thread shares with the loop.
  struct Run;

  void Read(const std::shared_ptr<Run>& run);
  void Take(const std::shared_ptr<Run>& run, const checkpoint::Chunk& chunk,
            const std::string& path);
  void End(const Status& status);
  void JoinFinished();

  EventLoop& loop_;
  const checkpoint::CheckpointFiles files_;
  std::atomic<uint64_t>* const restored_bytes_;
  std::shared_ptr<Run> run_;  // null: none is under way
  std::unique_ptr<Lane> fresh_;
  Lane::PartRestore part_;
  OnDone on_done_;
  std::vector<std::pair<std::shared_ptr<Run>, std::thread>> threads_;
  // Shared with what was posted to the loop, which may run when this is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace edl::ps
