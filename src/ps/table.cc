#include "ps/table.h"

#include <algorithm>
#include <array>
#include <cmath>
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
// The share of candidates in the bytes of a bounded table.
constexpr double kCandidateShare = 0.125;

size_t BlockBytes(size_t header, size_t dim, size_t slots) {
  return (header + dim * (1 + slots) * sizeof(float) + 7) / 8 * 8;
}

// Sample size of an eviction: the least used row of the sample is evicted.
constexpr int kDrawn = 8;
// Rows and candidates that a lane can always keep of a bounded table.
constexpr size_t kLeastRows = 256;
constexpr size_t kLeastCandidates = 64;

size_t BytesOfRows(size_t row_bytes, size_t rows) {
  return Slabs::MostBytes(row_bytes, rows) + RowIndex::MostBytes(rows);
}

// The largest count with bytes_of(count) <= bytes. `each` is the least size of one. Sizes grow in
// steps, so there is no inverse formula.
template <typename BytesOf>
size_t MostThatFit(size_t bytes, size_t each, const BytesOf& bytes_of) {
  size_t count = bytes / each;
  while (count > 0 && bytes_of(count) > bytes) count -= std::max<size_t>(count / 256, 1);
  return count;
}

// The part of a table's bytes in a lane that is reserved for candidates.
size_t CandidateBytes(const TableSpec& spec, double bytes) {
  return spec.admit_after > 0 ? static_cast<size_t>(bytes * kCandidateShare) : 0;
}

size_t MostRows(const TableSpec& spec, size_t row_bytes, double share) {
  if (spec.most_bytes == 0) return 0;
  const double all = static_cast<double>(spec.most_bytes) * share;
  const size_t bytes = static_cast<size_t>(all) - CandidateBytes(spec, all);
  const size_t rows =
      MostThatFit(bytes, row_bytes, [&](size_t count) { return BytesOfRows(row_bytes, count); });
  return std::max(rows, kLeastRows);
}

std::unique_ptr<Candidates> MakeCandidates(const TableSpec& spec, SaveNumber save, double share) {
  if (spec.admit_after == 0) return nullptr;
  size_t most = 0;
  if (spec.most_bytes > 0) {
    const size_t bytes = CandidateBytes(spec, static_cast<double>(spec.most_bytes) * share);
    most = std::max(MostThatFit(bytes, Candidates::kRecordBytes, Candidates::MostBytes),
                    kLeastCandidates);
  }
  return std::make_unique<Candidates>(static_cast<uint32_t>(spec.admit_after), most, save);
}

}  // namespace

size_t Table::LeastBytes(const TableSpec& spec, double share) {
  const size_t slots = (*MakeOptimizer(spec.optimizer))->slots();
  const auto rows =
      static_cast<double>(BytesOfRows(BlockBytes(sizeof(Header), spec.dim, slots), kLeastRows));
  if (spec.admit_after == 0) return static_cast<size_t>(std::ceil(rows / share));
  const auto candidates = static_cast<double>(Candidates::MostBytes(kLeastCandidates));
  return static_cast<size_t>(
      std::ceil(std::max(rows / (1 - kCandidateShare), candidates / kCandidateShare) / share));
}

Table::Table(TableSpec spec, SaveNumber save, double share)
    : spec_(std::move(spec)),
      optimizer_(std::move(*MakeOptimizer(spec_.optimizer))),
      most_rows_(
          MostRows(spec_, BlockBytes(sizeof(Header), spec_.dim, optimizer_->slots()), share)),
      slabs_(BlockBytes(sizeof(Header), spec_.dim, optimizer_->slots()),
             most_rows_ == 0 ? Slabs::kMost : most_rows_),
      save_(save),
      candidates_(MakeCandidates(spec_, save, share)) {
  CHECK(spec_.dim > 0, "table '{}' has dimension 0", spec_.name);
}

Status Table::Reserve(size_t rows) {
  // A bounded table makes room for each group of rows by evicting others.
  if (most_rows_ > 0) return Ok();
  EDL_RETURN_IF_ERROR(slabs_.Reserve(rows).Within("table '" + spec_.name + "'"));
  return index_.Reserve(rows).Within("table '" + spec_.name + "'");
}

bool Table::HasRoom(size_t rows) { return slabs_.Reserve(rows).ok() && index_.Reserve(rows).ok(); }

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
  // Prefetch the first row with the same hash; it is rarely the wrong one.
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
    // The same id may occur twice among `ids`.
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
    const bool makes = unknown == Unknown::kMake && candidates_ == nullptr;
    if (makes) MakeRoom();
    const bool has_room = makes && HasRoom(some.size());
    Locate(some, sizeof(Header) + dim * sizeof(float), located);
    if (has_room) MakeMissing(some, located);
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

void Table::Push(std::span<const int64_t> ids, const float* gradients, const Step& step,
                 uint32_t now) {
  now_ = now;
  if (spec_.evict_after > 0) EvictOld(ids.size());
  Located located;
  std::array<float*, kTogether> blocks;  // NOLINT: written before it is read
  while (!ids.empty()) {
    const std::span<const int64_t> some = ids.first(std::min(kTogether, ids.size()));
    MakeRoom();
    const bool has_room = HasRoom(some.size());
    Locate(some, slabs_.block_bytes(), located);
    bool aside = candidates_ != nullptr && SetCandidatesAside(some, located);
    // Only a bounded table can be without room here, and it would evict the new rows soon anyway.
    if (has_room) {
      MakeMissing(some, located);
    } else {
      std::ranges::replace(located.rows.begin(), located.rows.begin() + some.size(), kNone, kAside);
      aside = true;
    }
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
        return std::pair(of.uses, UINT32_MAX - (now_ - of.last_use));  // older rows rank lower
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
  constexpr uint32_t kBetweenChecks = 64;  // rows between two calls of is_enough
  while (scanned_ < scan_end_) {
    const uint32_t end = std::min(scan_end_, scanned_ + kBetweenChecks);
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

Status Table::Restore(const std::byte* record) {
  const int64_t id = IdOfRecord(record);
  const uint64_t hash = wire::HashOf(id);
  std::optional<uint32_t> row = Find(id, hash);
  if (!row.has_value()) {
    if (most_rows_ > 0 && rows() >= most_rows_) MakeRoom();
    EDL_RETURN_IF_ERROR(slabs_.Reserve(1).Within("table '" + spec_.name + "'"));
    EDL_RETURN_IF_ERROR(index_.Reserve(1).Within("table '" + spec_.name + "'"));
    row = slabs_.Take();
    index_.Insert(hash, *row);
  }
  std::memcpy(slabs_.At(*row), record, slabs_.block_bytes());
  HeaderOf(*row).save = save_;
  return Ok();
}

int64_t Table::IdOfRecord(const std::byte* record) {
  int64_t id = 0;
  static_assert(offsetof(Header, id) == 0);
  std::memcpy(&id, record, sizeof(id));
  return id;
}

}  // namespace edl::ps
