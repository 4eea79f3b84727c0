#include "master/shards/dataset.h"

#include <algorithm>
#include <utility>

#include "master/shards/permutation.h"

namespace edl::master {
namespace {

uint64_t CeilDiv(int64_t a, int64_t b) { return static_cast<uint64_t>((a + b - 1) / b); }

}  // namespace

Status Dataset::Check(const DatasetSpec& spec) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (spec.name.empty()) return InvalidArgument("a dataset needs a name");
  if (spec.size <= 0 || spec.size > kMost) {
    return InvalidArgument("dataset '{}' has size {}; it must be from 1 to 2^62", spec.name,
                           spec.size);
  }
  if (spec.batch_size <= 0 || spec.batch_size > (int64_t{1} << 31)) {
    return InvalidArgument("dataset '{}' has batch size {}; it must be from 1 to 2^31", spec.name,
                           spec.batch_size);
  }
  if (spec.batches_per_shard <= 0 || spec.batches_per_shard > (int64_t{1} << 31)) {
    return InvalidArgument("dataset '{}' has {} batches per shard; it must be from 1 to 2^31",
                           spec.name, spec.batches_per_shard);
  }
  // Each index of such a shard is computed and sent with its lease.
  constexpr int64_t kMostShuffled = int64_t{1} << 20;
  if (spec.order == Order::kShuffleRecords &&
      spec.batch_size * spec.batches_per_shard > kMostShuffled) {
    return InvalidArgument(
        "dataset '{}' shuffles records and has {} batches of {} records in a shard; with shuffled "
        "records a shard has at most {} records: lower num_minibatches_per_shard, or shuffle "
        "shards",
        spec.name, spec.batches_per_shard, spec.batch_size, kMostShuffled);
  }
  if (spec.epochs > 0 && spec.epochs > kMost / spec.size) {
    return InvalidArgument(
        "dataset '{}' has {} records and {} epochs; their product must be at most 2^62", spec.name,
        spec.size, spec.epochs);
  }
  return Ok();
}

Dataset::Dataset(DatasetRow row, Ledger& ledger)
    : ledger_(ledger),
      row_(std::move(row)),
      shards_per_epoch_(CeilDiv(row_.spec.size, records_per_shard())) {}

void Dataset::LoadDone(const DoneRow& row) {
  if (row.epoch == DoneRow::kEpochs) {
    epochs_done_.AddRange(row.range);
  } else {
    done_[row.epoch].AddRange(row.range);
  }
}

void Dataset::LoadReturned(const ReturnedRow& row) {
  // failed_by_ is not loaded: it only spreads retries over replicas.
  returned_[row.key] = {row.key, row.failures, row.counted};
}

void Dataset::LoadQuarantined(const QuarantinedRow& row) {
  quarantined_[row.key] = row.error;
  records_quarantined_ += records_in(row.key.ordinal);
}

void Dataset::LoadRestored(const DoneRow& row) {
  if (row.epoch == DoneRow::kEpochs) {
    restored_.epochs.AddRange(row.range);
  } else {
    restored_.shards[row.epoch].AddRange(row.range);
  }
}

bool Dataset::CursorHasMore() const {
  return !row_.closed && (endless() || row_.epoch < row_.spec.epochs);
}

void Dataset::SkipDone() {
  while (CursorHasMore()) {
    if (EpochComplete(row_.epoch)) {
      row_.next = shards_per_epoch_;
    } else if (const RangeSet* done = this->done(row_.epoch)) {
      row_.next = done->NextMissing(row_.next);
    }
    if (row_.next < shards_per_epoch_) return;
    ++row_.epoch;
    row_.next = 0;
  }
}

std::optional<Dataset::TakenShard> Dataset::Take(ReplicaRef caller) {
  const auto may_take = [&](const auto& entry) {
    if (row_.closed && !entry.second.counted) return false;
    const auto failed = failed_by_.find(entry.first);
    return failed == failed_by_.end() || !failed->second.contains(caller);
  };
  const auto returned = std::ranges::find_if(returned_, may_take);
  return returned != returned_.end() ? TakeReturned(returned) : TakeNew();
}

std::optional<Dataset::TakenShard> Dataset::TakeAny() {
  const auto may_take = [&](const auto& entry) { return !row_.closed || entry.second.counted; };
  const auto returned = std::ranges::find_if(returned_, may_take);
  return returned == returned_.end() ? TakeNew() : TakeReturned(returned);
}

Dataset::TakenShard Dataset::TakeReturned(std::map<ShardPosition, TakenShard>::iterator place) {
  const TakenShard taken = place->second;
  ledger_.DeleteReturned(id(), taken.key);
  returned_.erase(place);
  ++row_.shards_repeated;
  dirty_ = true;
  return taken;
}

std::optional<Dataset::TakenShard> Dataset::TakeNew() {
  if (!CursorHasMore()) return std::nullopt;
  const TakenShard taken{.key = {row_.epoch, row_.next}};
  ++row_.next;
  SkipDone();
  dirty_ = true;
  return taken;
}

// The cursor is always at a shard that is not done: only Restore marks shards after the cursor as
// done, and every move of the cursor ends with SkipDone.
bool Dataset::HasMore() const {
  if (!row_.closed) return !returned_.empty() || CursorHasMore();
  return std::ranges::any_of(returned_, [](const auto& entry) { return entry.second.counted; });
}

void Dataset::MarkDone(ShardPosition key) {
  std::vector<uint64_t> touched;
  done_[key.epoch].Add(key.ordinal, &touched);
  for (const uint64_t first : touched) dirty_ranges_.emplace(key.epoch, first);
  CompleteEpochIfCovered(key.epoch);
  dirty_ = true;
}

void Dataset::CompleteEpochIfCovered(int64_t epoch) {
  auto found = done_.find(epoch);
  if (found == done_.end() || found->second.count() < shards_per_epoch_) return;
  done_.erase(found);
  std::erase_if(dirty_ranges_, [&](const auto& range) { return range.first == epoch; });
  ledger_.DeleteDoneOfEpoch(id(), epoch);
  std::vector<uint64_t> touched;
  epochs_done_.Add(static_cast<uint64_t>(epoch), &touched);
  for (const uint64_t first : touched) dirty_ranges_.emplace(DoneRow::kEpochs, first);
}

int64_t Dataset::Done(const TakenShard& shard) {
  const ShardPosition key = shard.key;
  CHECK(!IsDone(key), "dataset '{}': shard {}/{} is done twice", spec().name, key.epoch,
        key.ordinal);
  const int64_t records = records_in(key.ordinal);
  failed_by_.erase(key);
  MarkDone(key);
  if (shard.counted) {
    row_.records_again -= records;
    return 0;
  }
  row_.records_done += records;
  ++row_.shards_done;
  CountEndAfterClose(records);
  return static_cast<int64_t>(CeilDiv(records, spec().batch_size));
}

void Dataset::Return(const TakenShard& shard) {
  const ShardPosition key = shard.key;
  CHECK(!IsDone(key), "dataset '{}': shard {}/{} is returned after it was done", spec().name,
        key.epoch, key.ordinal);
  returned_[key] = shard;
  ledger_.Put(ReturnedRow{id(), key, shard.failures, FailedBy(key), shard.counted});
}

void Dataset::Quarantine(const TakenShard& shard, const std::string& error) {
  const ShardPosition key = shard.key;
  const int64_t records = records_in(key.ordinal);
  if (shard.counted) {
    row_.records_again -= records;
    row_.records_done -= records;
    --row_.shards_done;
  } else {
    CountEndAfterClose(records);
  }
  std::string kept = error.substr(0, kLongestError);
  ledger_.Put(QuarantinedRow{id(), key, kept});
  quarantined_[key] = std::move(kept);
  records_quarantined_ += records;
  failed_by_.erase(key);
  MarkDone(key);
}

void Dataset::Fail(TakenShard shard, ReplicaRef by, const std::string& error) {
  if (++shard.failures >= kMaxFailures) {
    Quarantine(shard, error);
    return;
  }
  failed_by_[shard.key].insert(by);
  Return(shard);
}

checkpoint::ShardSet::Dataset Dataset::DoneShards() const {
  return {.generation = row_.generation, .epochs = epochs_done_, .shards = done_};
}

void Dataset::ReopenIn(int64_t epoch, const RangeSet& covered) {
  RangeSet again;
  for (const RangeSet::Range& range : done_[epoch].Minus(covered).ranges()) {
    for (uint64_t ordinal = range.first; ordinal <= range.last; ++ordinal) {
      // Quarantined shards were not trained.
      if (!quarantined_.contains({epoch, ordinal})) again.Add(ordinal);
    }
  }
  done_[epoch] = done_[epoch].Minus(again);
  Rewrite(epoch, done_[epoch]);
  CompleteEpochIfCovered(epoch);
  for (const RangeSet::Range& range : again.ranges()) {
    for (uint64_t ordinal = range.first; ordinal <= range.last; ++ordinal) {
      row_.records_again += records_in(ordinal);
      Return({.key = {epoch, ordinal}, .counted = true});
    }
  }
}

// Makes the next Flush replace the ranges of an epoch in the ledger by `ranges`.
void Dataset::Rewrite(int64_t epoch, const RangeSet& ranges) {
  std::erase_if(dirty_ranges_, [&](const auto& range) { return range.first == epoch; });
  ledger_.DeleteDoneOfEpoch(id(), epoch);
  for (const RangeSet::Range& range : ranges.ranges()) dirty_ranges_.emplace(epoch, range.first);
}

int64_t Dataset::Reopen(const checkpoint::ShardSet::Dataset& covered) {
  // A checkpoint of another generation covers nothing. What a restore declared done stays done.
  checkpoint::ShardSet::Dataset known = restored_;
  if (covered.generation == row_.generation) {
    for (const RangeSet::Range& range : covered.epochs.ranges()) known.epochs.AddRange(range);
    for (const auto& [epoch, shards] : covered.shards) {
      for (const RangeSet::Range& range : shards.ranges()) known.shards[epoch].AddRange(range);
    }
  }
  const size_t before = returned_.size();
  // Complete epochs that are not covered are treated like incomplete ones.
  const RangeSet uncertain = epochs_done_.Minus(known.epochs);
  epochs_done_ = epochs_done_.Minus(uncertain);
  Rewrite(DoneRow::kEpochs, epochs_done_);
  for (const RangeSet::Range& range : uncertain.ranges()) {
    for (uint64_t epoch = range.first; epoch <= range.last; ++epoch) {
      done_[static_cast<int64_t>(epoch)].AddRange({0, shards_per_epoch_ - 1});
    }
  }
  std::vector<int64_t> epochs;
  for (const auto& [epoch, done] : done_) {
    if (!known.epochs.Contains(static_cast<uint64_t>(epoch))) epochs.push_back(epoch);
  }
  for (const int64_t epoch : epochs) {
    const auto shards = known.shards.find(epoch);
    ReopenIn(epoch, shards == known.shards.end() ? RangeSet() : shards->second);
  }
  const auto reopened = static_cast<int64_t>(returned_.size() - before);
  // The workers of the last leftover round are not the reason that shards are left again.
  if (reopened > 0) row_.leftover_at = -1;
  dirty_ = true;
  return reopened;
}

std::string Dataset::FailedBy(ShardPosition key) const {
  std::string names;
  auto failed = failed_by_.find(key);
  if (failed == failed_by_.end()) return names;
  for (const ReplicaRef& by : failed->second) {
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", job::NameOf(by.role), by.id);
  }
  return names;
}

void Dataset::BeginGeneration() {
  ledger_.Clear(id());
  done_.clear();
  epochs_done_ = RangeSet();
  returned_.clear();
  failed_by_.clear();
  quarantined_.clear();
  records_quarantined_ = 0;
  dirty_ranges_.clear();
  ++row_.generation;
}

void Dataset::Reset() {
  Restore(0, {{0, shards_per_epoch_ - 1}}, std::nullopt);
  row_.order_generation = row_.generation;
}

void Dataset::Restore(int64_t epoch, const std::vector<RangeSet::Range>& remaining,
                      const std::optional<ShardOrder>& order) {
  // The checkpoint may be of a job with more epochs than this one.
  if (!endless()) epoch = std::min(epoch, spec().epochs);
  BeginGeneration();
  if (order.has_value()) {
    row_.seed = order->seed;
    row_.order_generation = order->generation;
  }
  row_.epoch = epoch;
  row_.next = 0;
  row_.closed = false;
  row_.told_finished = false;
  row_.leftover_at = -1;
  row_.records_not_trained = 0;
  row_.records_again = 0;
  row_.records_done = epoch * spec().size;
  row_.shards_done = epoch * static_cast<int64_t>(shards_per_epoch_);
  if (epoch > 0) {
    epochs_done_.AddRange({0, static_cast<uint64_t>(epoch) - 1});
    dirty_ranges_.emplace(DoneRow::kEpochs, 0);
  }
  RangeSet left;
  for (const RangeSet::Range& range : remaining) left.AddRange(range);
  if (CursorHasMore()) {
    uint64_t from = 0;
    for (const RangeSet::Range& range : left.ranges()) {
      if (range.first > from) done_[epoch].AddRange({from, range.first - 1});
      from = range.last + 1;
    }
    if (from < shards_per_epoch_) done_[epoch].AddRange({from, shards_per_epoch_ - 1});
  }
  if (const RangeSet* done = this->done(epoch)) {
    for (const RangeSet::Range& range : done->ranges()) {
      dirty_ranges_.emplace(epoch, range.first);
      row_.shards_done += static_cast<int64_t>(range.last - range.first + 1);
      row_.records_done += static_cast<int64_t>(range.last - range.first) * records_per_shard() +
                           records_in(range.last);
    }
    CompleteEpochIfCovered(epoch);
  }
  SaveRestored();
  SkipDone();
  dirty_ = true;
}

void Dataset::SaveRestored() {
  restored_ = DoneShards();
  std::vector<DoneRow> rows;
  for (const RangeSet::Range& range : restored_.epochs.ranges()) {
    rows.push_back({id(), DoneRow::kEpochs, range});
  }
  for (const auto& [epoch, shards] : restored_.shards) {
    for (const RangeSet::Range& range : shards.ranges()) rows.push_back({id(), epoch, range});
  }
  ledger_.PutRestored(id(), rows);
}

void Dataset::ClearQuarantined() {
  quarantined_.clear();
  records_quarantined_ = 0;
  ledger_.DeleteQuarantined(id());
}

void Dataset::Resume() {
  std::map<int64_t, RangeSet> again;
  for (const auto& [key, error] : quarantined_) again[key.epoch].Add(key.ordinal);
  ClearQuarantined();
  for (const auto& [epoch, ordinals] : again) {
    if (EpochComplete(epoch)) {
      RangeSet this_epoch;
      this_epoch.Add(static_cast<uint64_t>(epoch));
      epochs_done_ = epochs_done_.Minus(this_epoch);
      Rewrite(DoneRow::kEpochs, epochs_done_);
      done_[epoch].AddRange({0, shards_per_epoch_ - 1});
    }
    done_[epoch] = done_[epoch].Minus(ordinals);
    Rewrite(epoch, done_[epoch]);
    for (const RangeSet::Range& range : ordinals.ranges()) {
      for (uint64_t ordinal = range.first; ordinal <= range.last; ++ordinal) {
        Return({.key = {epoch, ordinal}});
      }
    }
  }
  row_.closed = false;
  row_.told_finished = false;
  row_.leftover_at = -1;
  row_.records_not_trained = 0;
  forgiven_rounds_ = 0;
  dirty_ = true;
}

int64_t Dataset::RecordsLeft() const {
  if (endless()) return 0;
  return spec().size * spec().epochs - row_.records_done - records_quarantined_ +
         row_.records_again;
}

void Dataset::CountRestAsNotTrained() {
  row_.records_not_trained = RecordsLeft();
  dirty_ = true;
}

void Dataset::Close() {
  if (row_.closed) return;
  row_.records_not_trained = RecordsLeft() - row_.records_again;
  row_.closed = true;
  dirty_ = true;
}

void Dataset::CountEndAfterClose(int64_t records) {
  if (!row_.closed || endless()) return;
  row_.records_not_trained = std::max<int64_t>(0, row_.records_not_trained - records);
}

bool Dataset::Complete() const {
  if (row_.closed) return row_.records_again == 0;
  return !endless() && RecordsLeft() == 0;
}

bool Dataset::IsDone(ShardPosition key) const {
  if (EpochComplete(key.epoch)) return true;
  const RangeSet* done = this->done(key.epoch);
  return done != nullptr && done->Contains(key.ordinal);
}

int64_t Dataset::records_in(uint64_t ordinal) const {
  const int64_t start = static_cast<int64_t>(ordinal) * records_per_shard();
  // The short shard keeps its ordinal also when shards are shuffled, so counts do not depend on the
  // order.
  return std::min(records_per_shard(), spec().size - start);
}

void Dataset::Fill(LeasedShard& shard) const {
  shard.dataset = spec().name;
  shard.task_type = spec().task_type;
  shard.dataset_id = row_.id;
  shard.generation = row_.generation;
  const int64_t records = records_in(shard.key.ordinal);
  const uint64_t key =
      Mix(Mix(row_.seed, row_.order_generation), static_cast<uint64_t>(shard.key.epoch));
  uint64_t place = shard.key.ordinal;
  // Only full shards are shuffled, and the short one stays last, so the size of a shard is a
  // function of its ordinal.
  const uint64_t full = static_cast<uint64_t>(spec().size / records_per_shard());
  if (spec().order == Order::kShuffleShards && place < full) {
    place = Permutation(full, key).At(place);
  }
  shard.start = static_cast<int64_t>(place) * records_per_shard();
  shard.end = shard.start + records;
  if (spec().order != Order::kShuffleRecords) return;
  const Permutation order(static_cast<uint64_t>(spec().size), key);
  shard.indices.reserve(static_cast<size_t>(records));
  for (int64_t at = shard.start; at < shard.end; ++at) {
    shard.indices.push_back(static_cast<int64_t>(order.At(static_cast<uint64_t>(at))));
  }
}

void Dataset::set_told_finished() {
  dirty_ = dirty_ || !row_.told_finished;
  row_.told_finished = true;
}

void Dataset::BeginLeftoverRound() {
  row_.leftover_at = records_trained();
  dirty_ = true;
}

void Dataset::ForgiveLeftoverRound() {
  if (row_.leftover_at < 0 || forgiven_rounds_ >= kForgivenRounds) return;
  ++forgiven_rounds_;
  row_.leftover_at = -1;
  dirty_ = true;
}

void Dataset::Flush() {
  for (const auto& [epoch, first] : dirty_ranges_) {
    const RangeSet* ranges = epoch == DoneRow::kEpochs ? &epochs_done_ : done(epoch);
    const RangeSet::Range* range = ranges == nullptr ? nullptr : ranges->StartingAt(first);
    if (range != nullptr) {
      ledger_.Put(DoneRow{id(), epoch, *range});
    } else {
      ledger_.DeleteDone(id(), epoch, first);
    }
  }
  dirty_ranges_.clear();
  if (dirty_) ledger_.Put(row_);
  dirty_ = false;
}

const RangeSet* Dataset::done(int64_t epoch) const {
  auto found = done_.find(epoch);
  return found == done_.end() ? nullptr : &found->second;
}

job::DatasetView Dataset::View() const {
  return {.name = spec().name,
          .task_type = std::string(NameOf(spec().task_type)),
          .size = spec().size,
          .epochs = std::max<int64_t>(0, spec().epochs),
          .epoch = endless() ? row_.epoch : std::min(row_.epoch, spec().epochs - 1),
          .records_done = row_.records_done,
          .records_total = endless() ? 0 : spec().size * spec().epochs,
          .shards_done = row_.shards_done,
          .shards_repeated = row_.shards_repeated,
          .shards_quarantined = static_cast<int64_t>(quarantined_.size()),
          .records_not_trained = row_.records_not_trained,
          .finished = Complete()};
}

}  // namespace edl::master
