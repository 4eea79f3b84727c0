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
#include "ps/lane_checkpoint_writer.h"
#include "ps/lane_state.h"

namespace edl::ps {

// Figures of a complete save.
struct SaveReport {
  uint64_t bytes = 0;
  Duration took{};
  Duration longest_pause{};  // the longest time in which the lane did nothing else
};

// Saves a lane to a file while the lane serves: the lane's loop makes chunks for a short time
// between two requests, and the disk loop writes them. The chunks that wait for the disk are
// bounded: above the bound the lane makes no chunks, and pushes must wait (see IsFull).
//
// Confined to the lane's loop.
class LaneSaver {
 public:
  struct Options {
    size_t buffer_bytes = 0;  // bound of the chunks that wait for the disk
    checkpoint::CheckpointFiles files = checkpoint::CheckpointFiles::Anywhere();
    std::atomic<uint64_t>* saved_bytes = nullptr;  // if set: counts the bytes that were written
  };

  // The references outlive the saver. `on_room` is called when pushes need not wait any more.
  LaneSaver(LaneState& state, EventLoop& lane_loop, EventLoop& disk_loop, const Clock& clock,
            std::function<void()> on_room, Options options);
  // Cancels the running save, if any, without calling its `on_done`.
  ~LaneSaver();

  using OnDone = std::function<void(const Result<SaveReport>&)>;
  // Saves the lane as it is now to a new file. Calls `on_done` on the lane's loop when the file
  // would survive a power failure, or when the save failed and the file was removed.
  // FailedPrecondition: another save of this lane is running.
  Status Begin(const std::filesystem::path& path, OnDone on_done);
  // Cancels the running save, if any, and removes its file. Its `on_done` gets Cancelled.
  void Cancel();

  bool running() const { return disk_ != nullptr; }

  // Whether pushes must wait: a push may have to copy many rows and blocks into the save first.
  bool IsFull() const {
    return writer_ != nullptr && (waiting_bytes_ > options_.buffer_bytes ||
                                  writer_->BlockBytesToSave() > options_.buffer_bytes);
  }

 private:
  // The file of a save. Confined to the disk loop; shared with the functions posted there.
  struct Disk;

  wire::Buffer TakeSpare();
  void Give(checkpoint::Chunk chunk);
  bool DoSlice();
  void OnWritten(size_t bytes, const Status& status);
  void Finish();
  void End(const Result<SaveReport>& result);

  const Options options_;
  LaneState& state_;
  EventLoop& lane_loop_;
  EventLoop& disk_loop_;
  const Clock& clock_;
  const std::function<void()> on_room_;
  std::shared_ptr<Disk> disk_;                    // null: no save is running
  std::unique_ptr<LaneCheckpointWriter> writer_;  // null: all chunks were made, or no save runs
  OnDone on_done_;
  Time began_;
  Duration longest_pause_{};
  size_t waiting_bytes_ = 0;
  // Buffers of written chunks. They are reused, because the kernel has to clear new memory.
  std::vector<wire::Buffer> spares_;
  // Shared with posted functions, which may run after the destructor.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace edl::ps
