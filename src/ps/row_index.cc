#include "ps/row_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace edl::ps {
namespace {

constexpr size_t kFirstPlaces = 1024;
// Places of the old table that an insertion takes over. The new one has twice as many, so 2 would
// be enough for it not to be full before.
constexpr uint64_t kMovedPerInsert = 16;

// Above this share of taken places a search takes long.
bool IsFull(size_t used, uint64_t places) { return used * 10 >= places * 7; }

}  // namespace

RowIndex::RowIndex() : now_(MakeTable(kFirstPlaces)) {}

RowIndex::Table RowIndex::MakeTable(size_t places) {
  return {.pages = Pages(places * sizeof(Entry)), .mask = places - 1};
}

size_t RowIndex::MostBytes(size_t rows) {
  size_t places = kFirstPlaces;
  while (IsFull(rows * 2, places)) places *= 2;
  // The one that is taken over is there too.
  return 2 * Pages::RoundedUp(places * sizeof(Entry));
}

void RowIndex::Put(Table& table, Entry entry) {
  Entry* const entries = table.entries();
  for (uint64_t at = (entry >> kRowBits) & table.mask;; at = (at + 1) & table.mask) {
    if (entries[at] != 0 && entries[at] != kGone) continue;
    if (entries[at] == 0) ++table.used;
    entries[at] = entry;
    return;
  }
}

void RowIndex::RemoveFrom(Table& table, Entry entry) {
  if (table.mask == 0) return;
  Entry* const entries = table.entries();
  for (uint64_t at = (entry >> kRowBits) & table.mask; entries[at] != 0;
       at = (at + 1) & table.mask) {
    if (entries[at] != entry) continue;
    entries[at] = kGone;
    return;
  }
}

void RowIndex::Insert(uint64_t hash, uint32_t row) {
  if (IsFull(now_.used + 1, now_.mask + 1)) Grow();
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

void RowIndex::Grow() {
  // Does nothing but where rows are removed as fast as others are made.
  while (old_.mask != 0) MoveSome();
  const size_t places = now_.mask + 1;
  old_ = std::move(now_);
  // Many places that were taken once may be free again: then the size is right as it is.
  now_ = MakeTable(IsFull(size_ * 2, places) ? places * 2 : places);
  moved_ = 0;
}

void RowIndex::MoveSome() {
  if (old_.mask == 0) return;
  const Entry* const entries = old_.entries();
  const uint64_t end = std::min(moved_ + kMovedPerInsert, old_.mask + 1);
  // Their places are anywhere: memory brings all of them at once.
  for (uint64_t at = moved_; at < end; ++at) {
    __builtin_prefetch(&now_.entries()[(entries[at] >> kRowBits) & now_.mask], 1);
  }
  for (; moved_ < end; ++moved_) {
    const Entry entry = entries[moved_];
    if (entry != 0 && entry != kGone) Put(now_, entry);
  }
  if (moved_ > old_.mask) old_ = Table{};
}

}  // namespace edl::ps
