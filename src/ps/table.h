#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ps/candidates.h"
#include "ps/declaration.h"
#include "ps/optimizer/optimizer.h"
#include "ps/record_collector.h"
#include "ps/row_index.h"
#include "ps/slab.h"

namespace edl::ps {

// One lane's share of a table: rows by id, each with its slots, made when they are first asked for.
// Where the spec sets bounds, rows that are used least or not any more are forgotten; what they are
// when they are made anew is what they were at first. Confined to the lane.
class Table {
 public:
  // What a pull does about an id that has no row: makes one, or only tells what it would be.
  enum class Unknown { kMake, kTell };

  // REQUIRES: spec.dim > 0, and MakeOptimizer accepts spec.optimizer.
  // `save` is the number of the lane's last save, `share` the lane's share of the id space.
  explicit Table(TableSpec spec, SaveNumber save = 0, double share = 1);

  // Bytes that a bounded table needs over all lanes, to keep some rows in a lane with that share.
  static size_t LeastBytes(const TableSpec& spec, double share);

  // Makes room for so many rows more. ResourceExhausted: there is no memory for them.
  Status Reserve(size_t rows);
  // Writes the weights of `ids`, dim values each, to `out`. Where there is no memory for a row it
  // only tells what the row would be.
  void Pull(std::span<const int64_t> ids, Unknown unknown, float* out);
  // Changes the rows of `ids` by their gradients, dim values each. `now` is the time by which rows
  // grow old, in pushes. REQUIRES: no id is there twice, and Reserve() made room for them.
  void Push(std::span<const int64_t> ids, const float* gradients, const Step& step, uint32_t now);
  // Forgets a row; it is made anew when it is asked for. False: there is none.
  bool Remove(int64_t id);

  // --- saving ---
  // Rows are saved as they are at this moment: they go to `collector` a few at a time, and before
  // they change. It outlives the save. REQUIRES: no save is under way; the number is the last one's
  // successor.
  void BeginSave(SaveNumber number, RecordCollector* collector);
  // Saves rows until `is_enough` says so, which is asked now and then. False: all are saved.
  bool SaveSome(const std::function<bool()>& is_enough);
  // The save is done, or given up.
  void EndSave() { collector_ = nullptr; }
  // Gives all rows the number of the last save.
  void Renumber();
  // Takes a row as it was saved. ResourceExhausted: there is no memory for it.
  // REQUIRES: row_bytes() at `record`.
  Status Restore(const std::byte* record);
  static int64_t IdOfRecord(const std::byte* record);

  const TableSpec& spec() const { return spec_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  size_t rows() const { return index_.size(); }
  // Null: each id gets its row at once. Whoever saves and restores rows does so with these too.
  Candidates* candidates() { return candidates_.get(); }
  // Rows that bounds made it forget.
  uint64_t evicted() const { return evicted_; }
  // Memory of rows, also of removed ones, and of the index.
  size_t bytes() const {
    return slabs_.bytes() + index_.bytes() + (candidates_ == nullptr ? 0 : candidates_->bytes());
  }
  size_t row_bytes() const { return slabs_.block_bytes(); }

 private:
  // A block that was never taken is all zeros, and so is none.
  enum class BlockState : uint8_t { kFree = 0, kRow = 1 };
  struct Header {
    int64_t id = 0;
    uint32_t last_use = 0;  // when a push changed it last, or it was made
    uint16_t uses = 0;      // pushes that changed it; no more than it can hold
    SaveNumber save = 0;
    BlockState state = BlockState::kFree;
  };
  static_assert(sizeof(Header) == 16);

  // So many ids are looked up together: what memory has to bring for one comes beside the others'.
  static constexpr size_t kTogether = 64;
  struct Located {
    std::array<uint64_t, kTogether> hashes;
    std::array<uint32_t, kTogether> rows;  // kNone: there is none; kAside: and shall be none
  };

  Header& HeaderOf(uint32_t row) const { return *reinterpret_cast<Header*>(slabs_.At(row)); }
  float* WeightsOf(uint32_t row) const {
    return reinterpret_cast<float*>(slabs_.At(row) + sizeof(Header));
  }
  void PrefetchRow(uint32_t row, size_t bytes) const;
  std::optional<uint32_t> Find(int64_t id, uint64_t hash) const;
  // Finds the rows of at most kTogether ids, and brings so many bytes of each to the processor.
  void Locate(std::span<const int64_t> ids, size_t bytes, Located& located) const;
  // Sets aside, among the ids that have no row, those that get none yet. False: there are none.
  bool SetCandidatesAside(std::span<const int64_t> ids, Located& located);
  // Makes the rows that are not there.
  void MakeMissing(std::span<const int64_t> ids, Located& located);
  // Whether so many rows can be made. Rows may move.
  bool HasRoom(size_t rows);
  // All but its weights.
  uint32_t Make(int64_t id, uint64_t hash);
  // Before a row changes.
  void SaveBefore(uint32_t row);
  void RemoveRow(uint32_t row, uint64_t hash);
  // Makes room for kTogether rows, where there is a bound and it is near. To be called while no
  // row's place is held.
  void MakeRoom();
  // Forgets some rows that were not changed for long.
  void EvictOld(size_t looks);

  const TableSpec spec_;
  const std::unique_ptr<Optimizer> optimizer_;
  const size_t most_rows_;  // 0: no bound
  Slabs slabs_;
  RowIndex index_;
  SaveNumber save_;                       // the last that began
  RecordCollector* collector_ = nullptr;  // of the save that is under way
  uint32_t scanned_ = 0;                  // blocks that it has looked at
  uint32_t scan_end_ = 0;
  const std::unique_ptr<Candidates> candidates_;  // null: each id gets its row at once
  std::vector<float> scratch_;
  uint32_t now_ = 0;    // when the last push was
  uint32_t hand_ = 0;   // the block at which the next look for old rows begins
  uint64_t draws_ = 0;  // of rows that may go
  uint64_t evicted_ = 0;
};

}  // namespace edl::ps
