#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "checkpoint/part_file.h"
#include "ps/lane_state.h"
#include "ps/record_collector.h"

namespace edl::ps {

// Turns a lane into the chunks of a part of a checkpoint (docs/formats/checkpoint.md), a few at a
// time while the lane is being changed. The chunks hold the lane as it was when the writer was
// made: a row or block that is about to change is saved first (copy on write).
//
// Confined to the lane's thread.
class LaneCheckpointWriter {
 public:
  using GiveChunk = std::function<void(checkpoint::Chunk)>;

  // Starts a save: calls `give` for the head, the watermarks, the step counts and the open rounds.
  // Later chunks are given by SaveSome() and by changes of the lane. `reuse` may return the memory
  // of a chunk that is not needed any more. `state` outlives the writer.
  // REQUIRES: no other writer of this lane exists.
  LaneCheckpointWriter(
      LaneState& state, GiveChunk give,
      RecordCollector::Reuse reuse = [] { return wire::Buffer(); });
  // Cancels the save if it is not complete.
  ~LaneCheckpointWriter();
  LaneCheckpointWriter(const LaneCheckpointWriter&) = delete;
  LaneCheckpointWriter& operator=(const LaneCheckpointWriter&) = delete;

  // Saves until `is_enough` returns true; it is called now and then. Returns false when all chunks
  // were given: the save is complete, and further calls do nothing.
  bool SaveSome(const std::function<bool()>& is_enough);
  // Bytes of the blocks that are not saved yet. A push changes all blocks, so it copies at most
  // this much.
  size_t BlockBytesToSave() const;

 private:
  RecordCollector* MakeCollector(checkpoint::ChunkKind kind, uint32_t index, size_t record_bytes);
  void BeginParameters();
  void GiveHead();
  void GiveSteps();
  void GiveRounds();
  void GiveRoundRows(uint32_t index, const SynchronousRounds::Rows& rows);
  void GiveRoundBlocks(uint32_t index, const SynchronousRounds::Blocks& blocks);
  void End(LaneParameters::SaveEnd end);

  LaneState& state_;
  const GiveChunk give_;
  const RecordCollector::Reuse reuse_;
  // One for the rows of each table, and one for its candidates if it has some.
  std::vector<std::unique_ptr<RecordCollector>> collectors_;
  std::vector<Table*> tables_;          // in the order of the head
  std::vector<TensorBlocks*> tensors_;  // in the order of the head
  size_t tables_done_ = 0;
  size_t tensors_done_ = 0;
  bool ended_ = false;
};

}  // namespace edl::ps
