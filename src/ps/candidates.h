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

// Ids of a table that were pushed too seldom to have a row yet, and how often each was. Saved and
// restored as a table's rows are. Confined to the lane.
class Candidates {
 public:
  static constexpr size_t kRecordBytes = 16;

  // A push makes an id a row when it is its `admit_after`-th. At most `most` are remembered, and
  // above that the one of some that was pushed least is forgotten; 0: all are.
  Candidates(uint32_t admit_after, size_t most, SaveNumber save);

  // Counts a push of an id that has no row. True: it gets one now, and is no candidate any more.
  bool Count(int64_t id, uint64_t hash);

  void BeginSave(SaveNumber number, RecordCollector* collector);
  bool SaveSome(const std::function<bool()>& is_enough);
  void EndSave() { collector_ = nullptr; }
  void Renumber();
  // ResourceExhausted: there is no memory for it. REQUIRES: kRecordBytes at `record`.
  Status Restore(const std::byte* record);

  // Memory that so many take at most.
  static size_t MostBytes(size_t most);
  size_t size() const { return index_.size(); }
  size_t bytes() const { return slabs_.bytes() + index_.bytes(); }

 private:
  struct Entry {
    int64_t id = 0;
    uint32_t pushes = 0;
    uint16_t zero = 0;
    SaveNumber save = 0;
    bool taken = false;
  };
  static_assert(sizeof(Entry) == kRecordBytes);

  Entry& At(uint32_t number) const { return *reinterpret_cast<Entry*>(slabs_.At(number)); }
  std::optional<uint32_t> Find(int64_t id, uint64_t hash) const;
  uint32_t Add(int64_t id, uint64_t hash);
  void Remove(uint32_t number);
  void ForgetOne();
  void SaveBefore(Entry& entry);

  const uint32_t admit_after_;
  const size_t most_;
  Slabs slabs_;
  RowIndex index_;
  SaveNumber save_;
  RecordCollector* collector_ = nullptr;
  uint32_t scanned_ = 0;
  uint32_t scan_end_ = 0;
  uint64_t draws_ = 0;
};

}  // namespace edl::ps
