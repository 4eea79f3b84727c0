#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/status.h"
#include "ps/record_collector.h"
#include "ps/row_index.h"
#include "ps/slab.h"

namespace edl::ps {

// Counts the pushes of ids that have no row yet, because their table creates a row only at the
// admit_after-th push. Saved and restored like the rows of a table. Confined to the lane's thread.
class Candidates {
 public:
  static constexpr size_t kRecordBytes = 16;

  // Keeps at most `most` candidates (0: no limit). Above that, it drops the least pushed candidate
  // of a small random sample.
  Candidates(uint32_t admit_after, size_t most, SaveNumber save);

  // Counts a push of an id without a row. True: the id gets its row now, and the candidate is
  // removed.
  bool Count(int64_t id, uint64_t hash);

  // --- saving: the same contract as Table has ---
  void BeginSave(SaveNumber number, RecordCollector* collector);
  bool SaveSome(const std::function<bool()>& is_enough);
  void EndSave() { collector_ = nullptr; }
  void Renumber();
  // ResourceExhausted: there is no memory for it. REQUIRES: kRecordBytes at `record`.
  Status Restore(const std::byte* record);

  // An upper bound of bytes() for `most` candidates.
  static size_t MostBytes(size_t most);
  size_t size() const { return index_.size(); }
  size_t bytes() const { return slabs_.bytes() + index_.bytes(); }

 private:
  struct Entry {
    int64_t id = 0;
    uint32_t pushes = 0;
    uint16_t zero = 0;  // padding that is saved
    SaveNumber save = 0;
    bool in_use = false;
  };
  static_assert(sizeof(Entry) == kRecordBytes);

  Entry& At(uint32_t number) const { return *reinterpret_cast<Entry*>(slabs_.At(number)); }
  std::optional<uint32_t> Find(int64_t id, uint64_t hash) const;
  uint32_t Add(int64_t id, uint64_t hash);
  void Remove(uint32_t number);
  void DropOne();
  void SaveBefore(Entry& entry);

  const uint32_t admit_after_;
  const size_t most_;
  Slabs slabs_;
  RowIndex index_;
  SaveNumber save_;
  RecordCollector* collector_ = nullptr;  // null: no save is running
  uint32_t scanned_ = 0;                  // blocks that SaveSome() has examined
  uint32_t scan_end_ = 0;
  uint64_t draws_ = 0;  // random numbers that DropOne() has drawn
};

}  // namespace edl::ps
