#include "ps/candidates.h"

#include <algorithm>
#include <cstring>

#include "wire/placement.h"

namespace edl::ps {
namespace {

// Sample size of an eviction: the least pushed candidate of the sample is evicted.
constexpr int kDrawn = 4;

}  // namespace

Candidates::Candidates(uint32_t admit_after, size_t most, SaveNumber save)
    : admit_after_(admit_after),
      most_(most),
      slabs_(kRecordBytes, most == 0 ? Slabs::kMost : most),
      save_(save) {}

size_t Candidates::MostBytes(size_t most) {
  return Slabs::MostBytes(kRecordBytes, most) + RowIndex::MostBytes(most);
}

std::optional<uint32_t> Candidates::Find(int64_t id, uint64_t hash) const {
  return index_.Find(hash, [&](uint32_t number) { return At(number).id == id; });
}

uint32_t Candidates::Add(int64_t id, uint64_t hash) {
  const uint32_t number = slabs_.Take();
  At(number) = {.id = id, .save = save_, .in_use = true};
  index_.Insert(hash, number);
  return number;
}

bool Candidates::Count(int64_t id, uint64_t hash) {
  std::optional<uint32_t> number = Find(id, hash);
  if (!number.has_value()) {
    if (admit_after_ <= 1) return true;
    if (most_ > 0 && size() >= most_) DropOne();
    // Without memory for a candidate, this push is not counted.
    if (!slabs_.Reserve(1).ok() || !index_.Reserve(1).ok()) return false;
    number = Add(id, hash);
  }
  Entry& entry = At(*number);
  SaveBefore(entry);
  if (++entry.pushes < admit_after_) return false;
  Remove(*number);
  return true;
}

void Candidates::Remove(uint32_t number) {
  Entry& entry = At(number);
  SaveBefore(entry);
  index_.Remove(wire::HashOf(entry.id), number);
  entry.in_use = false;
  slabs_.Give(number);
}

void Candidates::DropOne() {
  std::optional<uint32_t> least;
  for (int drawn = 0; drawn < kDrawn || !least.has_value(); ++drawn) {
    const auto number =
        static_cast<uint32_t>(wire::HashOf(static_cast<int64_t>(++draws_)) % slabs_.taken());
    if (!At(number).in_use) continue;
    if (!least.has_value() || At(number).pushes < At(*least).pushes) least = number;
  }
  Remove(*least);
}

void Candidates::SaveBefore(Entry& entry) {
  if (collector_ == nullptr || entry.save == save_) return;
  collector_->Add(reinterpret_cast<const std::byte*>(&entry));
  entry.save = save_;
}

void Candidates::BeginSave(SaveNumber number, RecordCollector* collector) {
  save_ = number;
  collector_ = collector;
  scanned_ = 0;
  scan_end_ = slabs_.taken();
}

bool Candidates::SaveSome(const std::function<bool()>& is_enough) {
  constexpr uint32_t kBetweenChecks = 256;  // candidates between two calls of is_enough
  while (scanned_ < scan_end_) {
    const uint32_t end = std::min(scan_end_, scanned_ + kBetweenChecks);
    for (; scanned_ < end; ++scanned_) {
      if (At(scanned_).in_use) SaveBefore(At(scanned_));
    }
    if (is_enough()) return true;
  }
  return false;
}

void Candidates::Renumber() {
  for (uint32_t number = 0; number < slabs_.taken(); ++number) At(number).save = save_;
}

Status Candidates::Restore(const std::byte* record) {
  Entry saved;
  std::memcpy(&saved, record, sizeof(saved));
  const uint64_t hash = wire::HashOf(saved.id);
  const std::optional<uint32_t> known = Find(saved.id, hash);
  EDL_RETURN_IF_ERROR(slabs_.Reserve(1));
  EDL_RETURN_IF_ERROR(index_.Reserve(1));
  At(known.has_value() ? *known : Add(saved.id, hash)).pushes = saved.pushes;
  return Ok();
}

}  // namespace edl::ps
