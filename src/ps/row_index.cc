#include "ps/row_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace edl::ps {
namespace {

constexpr size_t kFirstPlaces = 64;
// Places of the old table that are moved with each insertion. The new table has at least as many
// places, so 2 would be enough to finish before it is full.
constexpr uint64_t kMovedPerInsert = 16;

// Above this load factor a search takes long.
bool IsFull(size_t used, uint64_t places) { return used * 10 >= places * 7; }

}  // namespace

Result<RowIndex::Table> RowIndex::MakeTable(size_t places) {
  Table table;
  EDL_ASSIGN_OR_RETURN(table.pages, Pages::Make(places * sizeof(Entry)));
  table.first = table.places();
  table.mask = places - 1;
  return table;
}

size_t RowIndex::MostBytes(size_t rows) {
  size_t places = kFirstPlaces;
  while (IsFull(rows * 2, places)) places *= 2;
  // The old table exists until all of its entries are moved.
  return 2 * Pages::RoundedUp(places * sizeof(Entry));
}

void RowIndex::Put(Table& table, Entry entry) {
  Entry* const entries = table.places();
  for (uint64_t at = (entry >> kRowBits) & table.mask;; at = (at + 1) & table.mask) {
    if (entries[at] != 0 && entries[at] != kGone) continue;
    if (entries[at] == 0) ++table.used;
    entries[at] = entry;
    return;
  }
}

void RowIndex::RemoveFrom(Table& table, Entry entry) {
  if (table.mask == 0) return;
  Entry* const entries = table.places();
  for (uint64_t at = (entry >> kRowBits) & table.mask; entries[at] != 0;
       at = (at + 1) & table.mask) {
    if (entries[at] != entry) continue;
    entries[at] = kGone;
    return;
  }
}

Status RowIndex::Reserve(size_t rows) {
  const size_t taken = now_.used + left_;
  if (now_.mask != 0 && !IsFull(taken + rows, now_.mask + 1)) return Ok();
  return Grow(rows);
}

void RowIndex::Insert(uint64_t hash, uint32_t row) {
  CHECK(now_.used <= now_.mask, "Insert() without Reserve(): all {} places are used", now_.used);
  MoveSome();
  Put(now_, (Upper(hash) << kRowBits) | (Entry{row} + 1));
  ++size_;
}

void RowIndex::Remove(uint64_t hash, uint32_t row) {
  const Entry entry = (Upper(hash) << kRowBits) | (Entry{row} + 1);
  RemoveFrom(now_, entry);
  RemoveFrom(old_, entry);
  --size_;
}

Status RowIndex::Grow(size_t rows) {
  // Usually nothing is left to move, except if rows are removed as fast as others are inserted.
  while (old_.mask != 0) MoveSome();
  // If many entries were removed, a table of the same size is enough.
  size_t places = std::max<size_t>(now_.mask + 1, kFirstPlaces);
  while (IsFull(size_ * 2, places) || IsFull(size_ + rows, places)) places *= 2;
  EDL_ASSIGN_OR_RETURN(Table next, MakeTable(places));
  old_ = std::exchange(now_, std::move(next));
  moved_ = 0;
  left_ = size_;
  return Ok();
}

void RowIndex::MoveSome() {
  if (old_.mask == 0) return;
  const Entry* const entries = old_.entries();
  const uint64_t end = std::min(moved_ + kMovedPerInsert, old_.mask + 1);
  // Prefetch the new places together, so that their cache misses overlap.
  for (uint64_t at = moved_; at < end; ++at) {
    __builtin_prefetch(&now_.entries()[(entries[at] >> kRowBits) & now_.mask], 1);
  }
  for (; moved_ < end; ++moved_) {
    const Entry entry = entries[moved_];
    if (entry == 0 || entry == kGone) continue;
    Put(now_, entry);
    --left_;
  }
  if (moved_ <= old_.mask) return;
  old_ = Table{};
  left_ = 0;
}

}  // namespace edl::ps
