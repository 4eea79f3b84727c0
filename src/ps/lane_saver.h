#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/status.h"
#include "checkpoint/checkpoint_files.h"
#include "ps/lane.h"

namespace edl::ps {

// What became of a save.
struct Saved {
  uint64_t bytes = 0;
  Duration took{};
  Duration longest_pause{};  // of the lane, at a time
};

// Saves a lane while it serves: a slice between two requests, and the disk on another thread. What
// the disk has not taken yet is bounded: when it is full, the slices stop, and pushes have to wait.
// Confined to the lane's loop.
class LaneSaver {
 public:
  // All outlive it. `on_room` is called when pushes need not wait any more. `saved_bytes`, if any,
  // is raised by what was written.
  LaneSaver(Lane& lane, EventLoop& lane_loop, EventLoop& disk_loop, const Clock& clock,
            size_t buffer_bytes, std::function<void()> on_room,
            std::atomic<uint64_t>* saved_bytes = nullptr,
            checkpoint::CheckpointFiles files = checkpoint::CheckpointFiles::Anywhere());
  ~LaneSaver();

  using OnDone = std::function<void(const Result<Saved>&)>;
  // Saves the lane as it is now to that file, which must not be there yet; `on_done` is called when
  // it will survive a loss of power, or has failed, and then there is no file. FailedPrecondition:
  // a save is under way.
  Status Begin(const std::filesystem::path& path, OnDone on_done);
  // Gives up the save that is under way, if any, and removes its file.
  void Cancel();

  bool running() const { return disk_ != nullptr; }

  // Whether a push, which may have to copy many rows and blocks into the save first, is to wait.
  bool IsFull() const {
    return lane_.saving() &&
           (waiting_bytes_ > buffer_bytes_ || lane_.BlockBytesToSave() > buffer_bytes_);
  }

 private:
  // What the disk's thread has, from Begin to the end. Shared with what is posted there.
  struct Disk;

  wire::Buffer Spare();
  void Give(checkpoint::Chunk chunk);
  bool DoSlice();
  void OnWritten(size_t bytes, const Status& status);
  void Finish();
  void End(const Result<Saved>& result);

  const checkpoint::CheckpointFiles files_;
  Lane& lane_;
  EventLoop& lane_loop_;
  EventLoop& disk_loop_;
  const Clock& clock_;
  const size_t buffer_bytes_;
  const std::function<void()> on_room_;
  std::atomic<uint64_t>* const saved_bytes_;
  std::shared_ptr<Disk> disk_;  // null: no save is under way
  OnDone on_done_;
  Time began_;
  Duration longest_pause_{};
  size_t waiting_bytes_ = 0;
  // Buffers of written chunks. They are reused, because the system clears new memory.
  std::vector<wire::Buffer> spares_;
  // Shared with what was posted to the loop, which may run when this is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace edl::ps
