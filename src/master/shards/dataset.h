#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/range_set.h"
#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "job/job_view.h"
#include "master/ledger/ledger.h"
#include "master/types.h"

namespace edl::master {

// The shards of one dataset: which were never leased, which came back, which are done. It costs
// the same for 100 records and for 10^11: a counter, the returned shards and the done ranges.
// Who holds a lease is the dispatcher's business: to a Dataset a leased shard is one it handed out.
//
// Confined: call it on the master's loop.
class Dataset {
 public:
  // A shard failed this often by its own fault is quarantined.
  static constexpr int kForgivenRounds = 3;
  static constexpr int kMaxFailures = 3;
  // Longer errors are cut: programs give whole tracebacks, and each is kept for people.
  static constexpr size_t kLongestError = 4096;

  struct TakenShard {
    ShardKey key;
    int failures = 0;
    bool counted = false;  // was done before: it is not counted again
  };

  static Status Check(const DatasetSpec& spec);

  // REQUIRES: Check(row.spec).
  Dataset(DatasetRow row, Ledger& ledger);

  // From the ledger, before anything else is called.
  void LoadDone(const DoneRow& row);
  void LoadReturned(const ReturnedRow& row);
  void LoadQuarantined(const QuarantinedRow& row);
  void LoadRestored(const DoneRow& row);

  // Hands out a shard, returned shards before new ones. Take skips shards that `caller` itself has
  // failed; TakeAny does not. nullopt: there is none (for this caller).
  std::optional<TakenShard> Take(ReplicaRef caller);
  std::optional<TakenShard> TakeAny();
  // Something is left to hand out to somebody.
  bool HasMore() const;

  // A leased shard is done. Returns its batches, to be counted once.
  int64_t Done(const TakenShard& shard);
  // A leased shard comes back: nobody's fault.
  void Return(const TakenShard& shard);
  // A leased shard is not leased again, for `error`, until the job is resumed.
  void Quarantine(const TakenShard& shard, const std::string& error);
  // A leased shard comes back as failed by `by`; quarantined when that is once too often.
  void Fail(TakenShard shard, ReplicaRef by, const std::string& error);

  // The done shards.
  checkpoint::ShardSet::Dataset DoneShards() const;
  // Parameters were lost: what is done and not in `covered` has to be trained once more. It stays
  // counted. Returns how many shards that are.
  int64_t Reopen(const checkpoint::ShardSet::Dataset& covered);

  // Forgets all progress under a new generation, in a new order. Leases of the old one are void.
  void Reset();
  // The same, with everything done but `remaining` ordinals of `epoch` and all later epochs.
  // `order` is the one that these ordinals have; none: the present one. What it declares done stays
  // done when parameters are lost: it is the caller's word, not theirs.
  void Restore(int64_t epoch, const std::vector<RangeSet::Range>& remaining,
               const std::optional<ShardOrder>& order);
  // The job goes on by `train --resume`: nothing is quarantined or given up any more.
  void Resume();
  // Counts what was handed to nobody, or came back, as not trained: the job ends without it.
  void CountRestAsNotTrained();

  // Every shard of every epoch is done or quarantined.
  bool Complete() const;
  // Records in [start, end) of the dataset, and their indices for a record shuffle.
  void Fill(LeasedShard& shard) const;

  void set_told_finished();
  void BeginLeftoverRound();
  // The round lost a lease by force, or the master itself: that it got nothing done says nothing
  // about the program. Only so often, for a program may fall silent at its end each time.
  void ForgiveLeftoverRound();
  // Writes the row if it changed since the last call, and the done ranges that did.
  void Flush();

  ShardOrder order() const { return {row_.seed, row_.order_generation}; }
  DatasetId id() const { return row_.id; }
  const DatasetSpec& spec() const { return row_.spec; }
  const DatasetRow& row() const { return row_; }
  uint64_t shards_per_epoch() const { return shards_per_epoch_; }
  int64_t records_per_shard() const { return row_.spec.batch_size * row_.spec.batches_per_shard; }
  int64_t records_in(uint64_t ordinal) const;
  // Done, and not to be trained once more.
  int64_t records_trained() const { return row_.records_done - row_.records_again; }
  bool endless() const { return row_.spec.epochs <= 0; }
  // Done ordinals of an epoch; null when the epoch is complete or untouched.
  const RangeSet* done(int64_t epoch) const;
  bool EpochComplete(int64_t epoch) const {
    return epochs_done_.Contains(static_cast<uint64_t>(epoch));
  }
  // The earliest epoch with something left to do; may lie behind the last one.
  int64_t first_open_epoch() const { return static_cast<int64_t>(epochs_done_.NextMissing(0)); }
  bool IsDone(ShardKey key) const;
  const std::map<ShardKey, std::string>& quarantined() const { return quarantined_; }
  size_t returned_count() const { return returned_.size(); }
  const std::map<ShardKey, TakenShard>& returned() const { return returned_; }
  job::DatasetView View() const;

 private:
  TakenShard TakeReturned(std::map<ShardKey, TakenShard>::iterator place);
  std::optional<TakenShard> TakeNew();
  bool CursorHasMore() const;
  void SkipDone();
  void MarkDone(ShardKey key);
  void ReopenIn(int64_t epoch, const RangeSet& covered);
  void Rewrite(int64_t epoch, const RangeSet& ranges);
  void BeginGeneration();
  // What is done and was not trained here: by the last restore's word.
  void SaveRestored();
  void ClearQuarantined();
  // Names, for people.
  std::string FailedBy(ShardKey key) const;
  void CompleteEpochIfCovered(int64_t epoch);
  int64_t RecordsLeft() const;

  Ledger& ledger_;  // outlives the dataset
  DatasetRow row_;
  uint64_t shards_per_epoch_;
  std::map<int64_t, RangeSet> done_;  // of incomplete epochs; quarantined shards are in it too
  RangeSet epochs_done_;
  std::map<ShardKey, TakenShard> returned_;
  std::map<ShardKey, std::set<ReplicaRef>> failed_by_;  // of shards that are neither done nor aside
  std::map<ShardKey, std::string> quarantined_;
  int64_t records_quarantined_ = 0;
  checkpoint::ShardSet::Dataset restored_;  // done by the last restore's word
  int forgiven_rounds_ = 0;
  bool dirty_ = false;
  std::set<std::pair<int64_t, uint64_t>> dirty_ranges_;  // (epoch, first) to write or delete
};

}  // namespace edl::master
