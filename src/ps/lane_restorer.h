#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/status.h"
#include "checkpoint/checkpoint_files.h"
#include "ps/lane_checkpoint_reader.h"

namespace edl::ps {

// Reads the state of a lane from a checkpoint while the lane answers requests: a thread reads the
// parts, and the lane's loop takes one chunk at a time into a new state. The lane itself does not
// change: the caller gets the complete state. Confined to the lane's loop.
class LaneRestorer {
 public:
  // The loop outlives the restorer. `restored_bytes`, if set, outlives it and counts the bytes that
  // were read.
  LaneRestorer(EventLoop& lane_loop, checkpoint::CheckpointFiles files,
               std::atomic<uint64_t>* restored_bytes = nullptr);
  // Cancels the running restore and waits for the threads that read.
  ~LaneRestorer();

  using OnDone = std::function<void(Result<LaneState>)>;
  // Reads the state of `buckets` from the parts at `paths`; without paths the state is empty. Calls
  // `on_done` on the loop. A running restore is cancelled: its `on_done` gets Aborted.
  // ResourceExhausted: too many cancelled restores still wait for their storage.
  Status Begin(const BucketRange& buckets, std::vector<std::string> paths, RestoreMode mode,
               OnDone on_done);
  // Cancels the running restore, if any. Its `on_done` is not called.
  void Cancel();
  bool running() const { return run_ != nullptr; }

 private:
  // One restore, as the reading thread and the loop share it.
  struct Run;

  void Read(const std::shared_ptr<Run>& run);
  void Take(const std::shared_ptr<Run>& run, const checkpoint::Chunk& chunk,
            const std::string& path);
  void End(const Status& status);
  void JoinFinished();

  EventLoop& loop_;
  const checkpoint::CheckpointFiles files_;
  std::atomic<uint64_t>* const restored_bytes_;
  std::shared_ptr<Run> run_;                    // null: no restore is running
  std::optional<LaneCheckpointReader> reader_;  // of the running restore
  OnDone on_done_;
  std::vector<std::pair<std::shared_ptr<Run>, std::thread>> threads_;
  // Shared with posted functions, which may run after the destructor.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace edl::ps
