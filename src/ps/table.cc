#include "ps/table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "wire/placement.h"

namespace edl::ps {
namespace {

constexpr size_t kCacheLine = 64;
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kAside = UINT32_MAX - 1;
// Of its bytes that a table gives to candidates where it has a bound.
constexpr double kCandidateShare = 0.125;

size_t BlockBytes(size_t header, size_t dim, size_t slots) {
  return (header + dim * (1 + slots) * sizeof(float) + 7) / 8 * 8;
}

// Of a candidate, at the fill that the index has on average.
constexpr size_t kIndexBytes = 16;
// Of so many rows, drawn at random, the one that is used least goes.
constexpr int kDrawn = 8;

size_t MostRows(const TableSpec& spec, size_t row_bytes, double share, size_t least) {
  if (spec.most_bytes == 0) return 0;
  const auto bytes = static_cast<size_t>(static_cast<double>(spec.most_bytes) * share *
                                         (spec.admit_after > 0 ? 1 - kCandidateShare : 1));
  size_t rows = bytes / row_bytes;
  // The index grows in steps, so there is no formula the other way round.
  while (rows > least && rows * row_bytes + RowIndex::MostBytes(rows) > bytes) {
    rows -= std::max<size_t>(rows / 256, 1);
  }
  return std::max(least, rows);
}

std::unique_ptr<Candidates> MakeCandidates(const TableSpec& spec, SaveNumber save, double share) {
  if (spec.admit_after == 0) return nullptr;
  size_t most = 0;
  if (spec.most_bytes > 0) {
    const double bytes = static_cast<double>(spec.most_bytes) * share * kCandidateShare;
    most = static_cast<size_t>(bytes / (Candidates::kRecordBytes + kIndexBytes)) + 1;
  }
  return std::make_unique<Candidates>(static_cast<uint32_t>(spec.admit_after), most, save);
}

}  // namespace

Table::Table(TableSpec spec, SaveNumber save, double share)
    : spec_(std::move(spec)),
      optimizer_(std::move(*MakeOptimizer(spec_.optimizer))),
      slabs_(BlockBytes(sizeof(Header), spec_.dim, optimizer_->slots())),
      save_(save),
      most_rows_(MostRows(spec_, slabs_.block_bytes(), share, 4 * kTogether)),
      candidates_(MakeCandidates(spec_, save, share)) {
  CHECK(spec_.dim > 0, "table {} of dimension 0", spec_.name);
}

std::optional<uint32_t> Table::Find(int64_t id, uint64_t hash) const {
  return index_.Find(hash, [&](uint32_t row) { return HeaderOf(row).id == id; });
}

void Table::PrefetchRow(uint32_t row, size_t bytes) const {
  const std::byte* const begin = slabs_.At(row);
  for (size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(begin + at, 1);
}

uint32_t Table::Make(int64_t id, uint64_t hash) {
  const uint32_t row = slabs_.Take();
  HeaderOf(row) = {.id = id, .last_use = now_, .save = save_, .state = BlockState::kRow};
  optimizer_->InitSlots({WeightsOf(row) + spec_.dim, spec_.dim * optimizer_->slots()});
  index_.Insert(hash, row);
  return row;
}

void Table::Locate(std::span<const int64_t> ids, size_t bytes, Located& located) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    located.hashes[i] = wire::HashOf(ids[i]);
    index_.Prefetch(located.hashes[i]);
  }
  // Any candidate will do to be brought nearer; few are wrong.
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = index_.Find(located.hashes[i], [](uint32_t) { return true; });
    located.rows[i] = row.value_or(kNone);
    if (row.has_value()) PrefetchRow(*row, bytes);
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    uint32_t& row = located.rows[i];
    if (row != kNone && HeaderOf(row).id != ids[i]) {
      row = Find(ids[i], located.hashes[i]).value_or(kNone);
    }
  }
}

bool Table::SetCandidatesAside(std::span<const int64_t> ids, Located& located) {
  bool any = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (located.rows[i] != kNone || candidates_->Count(ids[i], located.hashes[i])) continue;
    located.rows[i] = kAside;
    any = true;
  }
  return any;
}

void Table::MakeMissing(std::span<const int64_t> ids, Located& located) {
  std::array<int64_t, kTogether> made_ids;     // NOLINT: written before it is read
  std::array<float*, kTogether> made_weights;  // NOLINT: written before it is read
  size_t made = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    uint32_t& row = located.rows[i];
    if (row != kNone) continue;
    // It may be there twice in what was located together.
    if (const auto found = made == 0 ? std::nullopt : Find(ids[i], located.hashes[i])) {
      row = *found;
      continue;
    }
    row = Make(ids[i], located.hashes[i]);
    made_ids[made] = ids[i];
    made_weights[made++] = WeightsOf(row);
  }
  if (made == 0) return;
  spec_.initializer.FillAll(spec_.seed, {made_ids.data(), made}, {made_weights.data(), made},
                            spec_.dim);
}

void Table::Pull(std::span<const int64_t> ids, Unknown unknown, float* out) {
  const size_t dim = spec_.dim;
  Located located;
  while (!ids.empty()) {
    const std::span<const int64_t> some = ids.first(std::min(kTogether, ids.size()));
    MakeRoom();
    Locate(some, sizeof(Header) + dim * sizeof(float), located);
    if (unknown == Unknown::kMake && candidates_ == nullptr) MakeMissing(some, located);
    for (size_t i = 0; i < some.size(); ++i, out += dim) {
      const uint32_t row = located.rows[i];
      if (row == kNone) {
        spec_.initializer.Fill(spec_.seed, some[i], {out, dim});
      } else {
        std::memcpy(out, WeightsOf(row), dim * sizeof(float));
      }
    }
    ids = ids.subspan(some.size());
  }
}

void Table::Push(std::span<const int64_t> ids, const float* gradients, const Step& step) {
  now_ = static_cast<uint32_t>(step.number);
  if (spec_.evict_after > 0) EvictOld(ids.size());
  Located located;
  std::array<float*, kTogether> blocks;  // NOLINT: written before it is read
  while (!ids.empty()) {
    const std::span<const int64_t> some = ids.first(std::min(kTogether, ids.size()));
    MakeRoom();
    Locate(some, slabs_.block_bytes(), located);
    const bool aside = candidates_ != nullptr && SetCandidatesAside(some, located);
    MakeMissing(some, located);
    if (aside) scratch_.clear();
    size_t count = 0;
    for (size_t i = 0; i < some.size(); ++i) {
      const uint32_t row = located.rows[i];
      if (row == kAside) continue;
      if (collector_ != nullptr) SaveBefore(row);
      Header& header = HeaderOf(row);
      header.uses += header.uses < UINT16_MAX ? 1 : 0;
      header.last_use = now_;
      blocks[count++] = WeightsOf(row);
      if (!aside) continue;
      const float* const gradient = gradients + i * spec_.dim;
      scratch_.insert(scratch_.end(), gradient, gradient + spec_.dim);
    }
    optimizer_->Apply({blocks.data(), count}, spec_.dim, aside ? scratch_.data() : gradients, step);
    gradients += some.size() * spec_.dim;
    ids = ids.subspan(some.size());
  }
}

bool Table::Remove(int64_t id) {
  const uint64_t hash = wire::HashOf(id);
  const std::optional<uint32_t> row = Find(id, hash);
  if (!row.has_value()) return false;
  RemoveRow(*row, hash);
  return true;
}

void Table::RemoveRow(uint32_t row, uint64_t hash) {
  if (collector_ != nullptr) SaveBefore(row);
  index_.Remove(hash, row);
  HeaderOf(row).state = BlockState::kFree;
  slabs_.Give(row);
}

void Table::MakeRoom() {
  if (most_rows_ == 0) return;
  while (rows() + kTogether > most_rows_) {
    std::optional<uint32_t> worst;
    for (int drawn = 0; drawn < kDrawn || !worst.has_value(); ++drawn) {
      const auto row =
          static_cast<uint32_t>(wire::HashOf(static_cast<int64_t>(++draws_)) % slabs_.taken());
      const Header& header = HeaderOf(row);
      if (header.state != BlockState::kRow) continue;
      const auto rank = [&](const Header& of) {
        return std::pair(of.uses, UINT32_MAX - (now_ - of.last_use));  // the older the lower
      };
      if (!worst.has_value() || rank(header) < rank(HeaderOf(*worst))) worst = row;
    }
    RemoveRow(*worst, wire::HashOf(HeaderOf(*worst).id));
    ++evicted_;
  }
}

void Table::EvictOld(size_t looks) {
  const uint32_t taken = slabs_.taken();
  for (size_t i = 0; i < std::min<size_t>(looks, taken); ++i) {
    hand_ = hand_ + 1 < taken ? hand_ + 1 : 0;
    const Header& header = HeaderOf(hand_);
    if (header.state != BlockState::kRow) continue;
    const auto age = static_cast<int32_t>(now_ - header.last_use);
    if (age <= static_cast<int32_t>(spec_.evict_after)) continue;
    RemoveRow(hand_, wire::HashOf(header.id));
    ++evicted_;
  }
}

void Table::SaveBefore(uint32_t row) {
  Header& header = HeaderOf(row);
  if (header.save == save_) return;
  collector_->Add(slabs_.At(row));
  header.save = save_;
}

void Table::BeginSave(SaveNumber number, RecordCollector* collector) {
  save_ = number;
  collector_ = collector;
  scanned_ = 0;
  scan_end_ = slabs_.taken();
}

bool Table::SaveSome(const std::function<bool()>& is_enough) {
  constexpr uint32_t kBetweenLooks = 64;
  while (scanned_ < scan_end_) {
    const uint32_t end = std::min(scan_end_, scanned_ + kBetweenLooks);
    for (; scanned_ < end; ++scanned_) {
      if (HeaderOf(scanned_).state == BlockState::kRow) SaveBefore(scanned_);
    }
    if (is_enough()) return true;
  }
  return false;
}

void Table::Renumber() {
  for (uint32_t row = 0; row < slabs_.taken(); ++row) HeaderOf(row).save = save_;
}

void Table::Restore(const std::byte* record) {
  const int64_t id = IdOfRecord(record);
  const uint64_t hash = wire::HashOf(id);
  std::optional<uint32_t> row = Find(id, hash);
  if (!row.has_value()) {
    row = slabs_.Take();
    index_.Insert(hash, *row);
  }
  std::memcpy(slabs_.At(*row), record, slabs_.block_bytes());
  HeaderOf(*row).save = save_;
}

int64_t Table::IdOfRecord(const std::byte* record) {
  int64_t id = 0;
  static_assert(offsetof(Header, id) == 0);
  std::memcpy(&id, record, sizeof(id));
  return id;
}

}  // namespace edl::ps
