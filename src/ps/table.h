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

// One lane's share of a table: rows by id, each with its optimizer slots. A row is created when it
// is first pulled or pushed. If the spec sets bounds, the least used and the oldest rows are
// evicted; an evicted row that is used again starts with its initial values. Confined to the lane.
class Table {
 public:
  // What a pull does about an id without a row: create the row, or only return its initial values.
  enum class Unknown { kMake, kTell };

  // REQUIRES: spec.dim > 0, and MakeOptimizer accepts spec.optimizer.
  // `save` is the number of the lane's last save, `share` the lane's share of the id space.
  explicit Table(TableSpec spec, SaveNumber save = 0, double share = 1);

  // The least bytes, over all lanes, with which a bounded table keeps some rows in a lane that has
  // this share.
  static size_t LeastBytes(const TableSpec& spec, double share);

  // Reserves memory for `rows` more rows. ResourceExhausted: there is not enough.
  Status Reserve(size_t rows);
  // Writes the weights of `ids`, dim values each, to `out`. If there is no memory for a new row,
  // writes its initial values.
  void Pull(std::span<const int64_t> ids, Unknown unknown, float* out);
  // Applies gradients, dim values each, to the rows of `ids`. `now` counts pushes; the age of a row
  // is measured by it. REQUIRES: `ids` are distinct, and Reserve() was called for them.
  void Push(std::span<const int64_t> ids, const float* gradients, const Step& step, uint32_t now);
  // Removes a row. It is created again when it is used. False: there is no such row.
  bool Remove(int64_t id);

  // --- saving ---
  // Starts a save of all rows as they are now. Rows go to `collector` a few at a time, and each row
  // goes there before it changes. `collector` outlives the save. REQUIRES: no save is running,
  // and `number` is the successor of the last one.
  void BeginSave(SaveNumber number, RecordCollector* collector);
  // Saves rows until `is_enough` returns true; it is called now and then. False: all are saved.
  bool SaveSome(const std::function<bool()>& is_enough);
  // Ends a save that is complete or cancelled.
  void EndSave() { collector_ = nullptr; }
  // Sets the save number of all rows to that of the last save.
  void Renumber();
  // Restores a saved row. ResourceExhausted: there is no memory for it.
  // REQUIRES: row_bytes() at `record`.
  Status Restore(const std::byte* record);
  static int64_t IdOfRecord(const std::byte* record);

  const TableSpec& spec() const { return spec_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  size_t rows() const { return index_.size(); }
  // Null: each id gets a row at once. Candidates are saved and restored like rows.
  Candidates* candidates() { return candidates_.get(); }
  // The number of evicted rows.
  uint64_t evicted() const { return evicted_; }
  // Memory of rows, including removed ones, and of the index.
  size_t bytes() const {
    return slabs_.bytes() + index_.bytes() + (candidates_ == nullptr ? 0 : candidates_->bytes());
  }
  size_t row_bytes() const { return slabs_.block_bytes(); }

 private:
  // kFree is 0, because a block that was never used is all zeros.
  enum class BlockState : uint8_t { kFree = 0, kRow = 1 };
  struct Header {
    int64_t id = 0;
    uint32_t last_use = 0;  // the push count when the row was changed last, or created
    uint16_t uses = 0;      // pushes that changed the row; saturates at 65,535
    SaveNumber save = 0;
    BlockState state = BlockState::kFree;
  };
  static_assert(sizeof(Header) == 16);

  // Ids that are looked up together, so that their cache misses overlap.
  static constexpr size_t kTogether = 64;
  struct Located {
    std::array<uint64_t, kTogether> hashes;
    std::array<uint32_t, kTogether> rows;  // kNone: no row; kAside: no row, and none is created
  };

  Header& HeaderOf(uint32_t row) const { return *reinterpret_cast<Header*>(slabs_.At(row)); }
  float* WeightsOf(uint32_t row) const {
    return reinterpret_cast<float*>(slabs_.At(row) + sizeof(Header));
  }
  void PrefetchRow(uint32_t row, size_t bytes) const;
  std::optional<uint32_t> Find(int64_t id, uint64_t hash) const;
  // Finds the rows of at most kTogether ids, and prefetches `bytes` of each.
  void Locate(std::span<const int64_t> ids, size_t bytes, Located& located) const;
  // Marks the ids that are only candidates with kAside. False: there are none.
  bool SetCandidatesAside(std::span<const int64_t> ids, Located& located);
  // Creates the missing rows.
  void MakeMissing(std::span<const int64_t> ids, Located& located);
  // Whether `rows` rows can be created. May move rows.
  bool HasRoom(size_t rows);
  // Creates a row without its weights.
  uint32_t Make(int64_t id, uint64_t hash);
  // Call before a row changes: saves it if the running save has not yet.
  void SaveBefore(uint32_t row);
  void RemoveRow(uint32_t row, uint64_t hash);
  // Evicts rows until kTogether rows fit into the bound. REQUIRES: no pointer to a row is held.
  void MakeRoom();
  // Evicts rows that were not changed for long; examines `looks` of them.
  void EvictOld(size_t looks);

  const TableSpec spec_;
  const std::unique_ptr<Optimizer> optimizer_;
  const size_t most_rows_;  // 0: no bound
  Slabs slabs_;
  RowIndex index_;
  SaveNumber save_;                       // of the last save that began
  RecordCollector* collector_ = nullptr;  // null: no save is running
  uint32_t scanned_ = 0;                  // blocks that SaveSome() has examined
  uint32_t scan_end_ = 0;
  const std::unique_ptr<Candidates> candidates_;  // null: each id gets a row at once
  std::vector<float> scratch_;
  uint32_t now_ = 0;    // the push count of the last push
  uint32_t hand_ = 0;   // the block that EvictOld() examined last
  uint64_t draws_ = 0;  // random numbers that MakeRoom() has drawn
  uint64_t evicted_ = 0;
};

}  // namespace edl::ps
