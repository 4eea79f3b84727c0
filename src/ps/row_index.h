#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ps/slab.h"

namespace edl::ps {

// A hash table from the hash of an id to the number of its row, with open addressing. It does not
// store ids: Find() asks the caller whether a row with the right hash has the right id. It grows
// incrementally, so no insertion takes long: a second, larger table takes over a few entries with
// each insertion. Confined.
class RowIndex {
 public:
  RowIndex() = default;

  // Prefetches the memory that Find(hash) reads.
  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(&now_.entries()[Upper(hash) & now_.mask]);
    if (old_.mask != 0) __builtin_prefetch(&old_.entries()[Upper(hash) & old_.mask]);
  }

  // Returns the first row with this hash for which `is_it(row number)` is true.
  template <typename IsIt>
  std::optional<uint32_t> Find(uint64_t hash, const IsIt& is_it) const {
    if (const auto found = FindIn(now_, hash, is_it)) return found;
    if (old_.mask != 0) return FindIn(old_, hash, is_it);
    return std::nullopt;
  }

  // Reserves memory for `rows` more insertions, even if other rows are removed between them.
  // ResourceExhausted: there is no memory for them.
  Status Reserve(size_t rows);
  // REQUIRES: the row is not in the index, and Reserve() was called for it.
  void Insert(uint64_t hash, uint32_t row);
  // REQUIRES: the row is in the index.
  void Remove(uint64_t hash, uint32_t row);

  // An upper bound of bytes() for an index that never has more than `rows` rows at a time, however
  // many are removed and inserted.
  static size_t MostBytes(size_t rows);

  size_t size() const { return size_; }
  size_t bytes() const { return now_.pages.size() + old_.pages.size(); }

 private:
  // The upper 34 bits of the hash, then 30 bits with the row's number + 1. The place of an entry
  // depends on the same upper bits: a table of 2^26 places uses 26 of them, and the other 8
  // distinguish most rows in neighbouring places. 0: the place was never used. kGone: the entry was
  // removed.
  using Entry = uint64_t;
  static constexpr int kRowBits = 30;
  static constexpr Entry kRowMask = (Entry{1} << kRowBits) - 1;
  static constexpr Entry kGone = kRowMask;

  // The only place of a table without memory. It is never written.
  static constexpr Entry kNoPlaces = 0;
  struct Table {
    Pages pages;
    const Entry* first = &kNoPlaces;
    uint64_t mask = 0;  // number of places - 1; 0: no memory
    size_t used = 0;    // places that are not 0

    const Entry* entries() const { return first; }
    Entry* places() const { return reinterpret_cast<Entry*>(pages.data()); }
  };

  static uint64_t Upper(uint64_t hash) { return hash >> kRowBits; }
  static Result<Table> MakeTable(size_t places);
  static void Put(Table& table, Entry entry);
  static void RemoveFrom(Table& table, Entry entry);
  Status Grow(size_t rows);
  void MoveSome();

  template <typename IsIt>
  static std::optional<uint32_t> FindIn(const Table& table, uint64_t hash, const IsIt& is_it) {
    const Entry* const entries = table.entries();
    const uint64_t upper = Upper(hash);
    for (uint64_t at = upper & table.mask;; at = (at + 1) & table.mask) {
      const Entry entry = entries[at];
      if (entry == 0) return std::nullopt;
      if (entry >> kRowBits != upper || entry == kGone) continue;
      const auto row = static_cast<uint32_t>(entry & kRowMask) - 1;
      if (is_it(row)) return row;
    }
  }

  Table now_;
  Table old_;           // being moved to now_; its entries stay until all are moved
  uint64_t moved_ = 0;  // places of old_ that were moved
  size_t left_ = 0;     // upper bound of the entries of old_ that were not moved yet
  size_t size_ = 0;
};

}  // namespace edl::ps
