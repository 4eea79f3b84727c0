#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ps/slab.h"

namespace edl::ps {

// From the hash of an id to the number of its row, by open addressing. Knows no ids: a found row is
// a candidate, and whoever has the row says whether it is the one. It grows by a second table that
// takes over a few places with each insertion, so that none takes long. Confined.
class RowIndex {
 public:
  RowIndex() = default;

  // Brings to the processor what Find will read.
  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(&now_.entries()[Upper(hash) & now_.mask]);
    if (old_.mask != 0) __builtin_prefetch(&old_.entries()[Upper(hash) & old_.mask]);
  }

  // The first candidate that `is_it` (of a row's number) accepts.
  template <typename IsIt>
  std::optional<uint32_t> Find(uint64_t hash, const IsIt& is_it) const {
    if (const auto found = FindIn(now_, hash, is_it)) return found;
    if (old_.mask != 0) return FindIn(old_, hash, is_it);
    return std::nullopt;
  }

  // Makes room for so many insertions more, whatever is removed between them. ResourceExhausted:
  // there is no memory for them.
  Status Reserve(size_t rows);
  // REQUIRES: the row is not in the index, and room was made for it.
  void Insert(uint64_t hash, uint32_t row);
  // REQUIRES: the row is in the index.
  void Remove(uint64_t hash, uint32_t row);

  // Memory that it takes at most where rows are removed as fast as others are made and there are
  // never more of them than so many.
  static size_t MostBytes(size_t rows);

  size_t size() const { return size_; }
  size_t bytes() const { return now_.pages.size() + old_.pages.size(); }

 private:
  // The upper bits of the hash, by which it has its place too, above the row's number + 1. A table
  // of 2^26 places takes 26 of them, and the other 8 tell most candidates from others. 0 is free;
  // kGone was taken.
  using Entry = uint64_t;
  static constexpr int kRowBits = 30;
  static constexpr Entry kRowMask = (Entry{1} << kRowBits) - 1;
  static constexpr Entry kGone = kRowMask;

  // A table that has no places is one place that is free, which nobody writes.
  static constexpr Entry kNoPlaces = 0;
  struct Table {
    Pages pages;
    const Entry* first = &kNoPlaces;
    uint64_t mask = 0;  // places - 1; 0: there is none
    size_t used = 0;    // that are not free

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
  Table old_;           // still being taken over; its entries stay until all are
  uint64_t moved_ = 0;  // places of old_ that are
  size_t left_ = 0;     // entries of old_ that are not, or more
  size_t size_ = 0;
};

}  // namespace edl::ps
