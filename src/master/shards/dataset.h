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

// The shards of one dataset: which were never leased, which were returned, which are done. Its cost
// does not depend on the number of records: it keeps a cursor, the returned shards and the done
// ranges. It does not keep leases: the dispatcher does, and reports how each taken shard ended.
//
// Confined: call it on the master's loop.
class Dataset {
 public:
  // How many leftover rounds ForgiveLeftoverRound forgives.
  static constexpr int kForgivenRounds = 3;
  // A shard that failed this often is quarantined.
  static constexpr int kMaxFailures = 3;
  // Longer errors are cut, because programs send whole tracebacks and each is kept.
  static constexpr size_t kLongestError = 4096;

  // A shard that was handed out, with what has to be known when it ends.
  struct TakenShard {
    ShardPosition key;
    int failures = 0;
    bool counted = false;  // was done before: not counted again
  };

  // InvalidArgument: a value of the spec is out of range.
  static Status Check(const DatasetSpec& spec);

  // REQUIRES: Check(row.spec).
  Dataset(DatasetRow row, Ledger& ledger);

  // Load rows of the ledger. Call these before all other methods.
  void LoadDone(const DoneRow& row);
  void LoadReturned(const ReturnedRow& row);
  void LoadQuarantined(const QuarantinedRow& row);
  void LoadRestored(const DoneRow& row);

  // Returns a shard to lease: returned shards first, then new ones. Take skips shards that `caller`
  // has failed itself; TakeAny does not. nullopt: there is none (for this caller).
  std::optional<TakenShard> Take(ReplicaRef caller);
  std::optional<TakenShard> TakeAny();
  // There is a shard to hand out, at least to some caller.
  bool HasMore() const;

  // A taken shard is done. Returns the number of batches to add to the job's version.
  int64_t Done(const TakenShard& shard);
  // A taken shard is to be handed out again, without a failure.
  void Return(const TakenShard& shard);
  // A taken shard is not handed out again until the job is resumed.
  void Quarantine(const TakenShard& shard, const std::string& error);
  // Replica `by` failed a taken shard: it is handed out again, or quarantined after kMaxFailures.
  void Fail(TakenShard shard, ReplicaRef by, const std::string& error);

  // All done shards.
  checkpoint::ShardSet::Dataset DoneShards() const;
  // Parameters were lost: done shards that are not in `covered` are handed out once more. They stay
  // counted. Returns their number.
  int64_t Reopen(const checkpoint::ShardSet::Dataset& covered);

  // Discards all progress and begins a new generation, in a new order. Taken shards are void.
  void Reset();
  // Begins a new generation in which everything is done except the `remaining` ordinals of `epoch`
  // and all later epochs. `order`: what the ordinals refer to; nullopt: the present order. Shards
  // that a restore declares done stay done when parameters are lost.
  void Restore(int64_t epoch, const std::vector<RangeSet::Range>& remaining,
               const std::optional<ShardOrder>& order);
  // The job continues by `train --resume`: quarantined shards are handed out again, and records
  // that were counted as not trained are left again.
  void Resume();
  // Counts all records that are left as not trained: the job ends without them.
  void CountRestAsNotTrained();

  // Training ends before its data: no more shards are handed out, and those that are left count as
  // not trained. Shards that are taken may still be done. Shards whose parameters are lost are
  // handed out again, because they are counted.
  void Close();
  bool closed() const { return row_.closed; }

  // Every shard of every epoch is done or quarantined. If the dataset is closed: no shard has to be
  // handed out again.
  bool Complete() const;
  // Sets dataset, range and indices of a shard. REQUIRES: shard.key is set.
  void Fill(LeasedShard& shard) const;

  // A caller was answered Finished.
  void set_told_finished();
  // All replicas have ended and shards are left: one more worker gets them.
  void BeginLeftoverRound();
  // A worker or the master was lost during the round, so a round without progress proves nothing
  // about the program: it does not count. Forgives kForgivenRounds rounds, because a program may
  // hang at its end each time.
  void ForgiveLeftoverRound();
  // Writes the row and the done ranges that changed since the last call to the ledger.
  void Flush();

  ShardOrder order() const { return {row_.seed, row_.order_generation}; }
  DatasetId id() const { return row_.id; }
  const DatasetSpec& spec() const { return row_.spec; }
  const DatasetRow& row() const { return row_; }
  uint64_t shards_per_epoch() const { return shards_per_epoch_; }
  int64_t records_per_shard() const { return row_.spec.batch_size * row_.spec.batches_per_shard; }
  int64_t records_in(uint64_t ordinal) const;
  // Records that are done and not to be trained once more.
  int64_t records_trained() const { return row_.records_done - row_.records_again; }
  bool endless() const { return row_.spec.epochs <= 0; }
  // The done ordinals of an epoch. Null: the epoch is complete, or nothing of it is done.
  const RangeSet* done(int64_t epoch) const;
  bool EpochComplete(int64_t epoch) const {
    return epochs_done_.Contains(static_cast<uint64_t>(epoch));
  }
  // The first epoch that is not complete; it may be after the last epoch.
  int64_t first_open_epoch() const { return static_cast<int64_t>(epochs_done_.NextMissing(0)); }
  bool IsDone(ShardPosition key) const;
  const std::map<ShardPosition, std::string>& quarantined() const { return quarantined_; }
  size_t returned_count() const { return returned_.size(); }
  const std::map<ShardPosition, TakenShard>& returned() const { return returned_; }
  job::DatasetView View() const;

 private:
  TakenShard TakeReturned(std::map<ShardPosition, TakenShard>::iterator place);
  std::optional<TakenShard> TakeNew();
  bool CursorHasMore() const;
  void SkipDone();
  void MarkDone(ShardPosition key);
  void ReopenIn(int64_t epoch, const RangeSet& covered);
  void Rewrite(int64_t epoch, const RangeSet& ranges);
  void BeginGeneration();
  // Remembers that all shards that are done now were declared done by a restore.
  void SaveRestored();
  void ClearQuarantined();
  // The names of the replicas that failed a shard, shown to users.
  std::string FailedBy(ShardPosition key) const;
  void CompleteEpochIfCovered(int64_t epoch);
  int64_t RecordsLeft() const;
  // A shard of a closed dataset ended: fewer records are left.
  void CountEndAfterClose(int64_t records);

  Ledger& ledger_;  // outlives the dataset
  DatasetRow row_;
  uint64_t shards_per_epoch_;
  std::map<int64_t, RangeSet> done_;  // of incomplete epochs; contains quarantined shards too
  RangeSet epochs_done_;
  std::map<ShardPosition, TakenShard> returned_;
  std::map<ShardPosition, std::set<ReplicaRef>>
      failed_by_;  // of shards that are neither done nor quarantined
  std::map<ShardPosition, std::string> quarantined_;
  int64_t records_quarantined_ = 0;
  checkpoint::ShardSet::Dataset restored_;  // declared done by the last restore
  int forgiven_rounds_ = 0;
  bool dirty_ = false;
  std::set<std::pair<int64_t, uint64_t>> dirty_ranges_;  // (epoch, first) to write or delete
};

}  // namespace edl::master
