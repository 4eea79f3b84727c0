#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "master/ledger/ledger.h"
#include "master/sessions/session.h"
#include "master/shards/dataset_table.h"
#include "master/shards/end_rule.h"
#include "master/shards/hang_detector.h"
#include "master/shards/lease_table.h"
#include "master/shards/parameter_rule.h"
#include "master/shards/waiter_queue.h"
#include "master/types.h"

namespace edl::master {

// What happens to a call that requests shards of a dataset that nobody has registered.
enum class IfUnknown { kAnswer, kHold };

// Leases the shards of all datasets, so that each shard is completed once, however often callers
// die, and ends every dataset without a deadlock: docs/states/shard.md. The dispatcher is the only
// one that moves shards between datasets, leases and waiting calls, and it writes each move to the
// ledger before it answers.
//
// Confined: call it on the master's loop.
class Dispatcher {
 public:
  // The largest result of a shard, and of an answer with results.
  static constexpr size_t kLargestResult = size_t{3} << 20;

  struct Counters {
    uint64_t next_lease = 1;
    int32_t next_task = 1;
    int64_t next_dataset = 1;
    int64_t version = 0;  // distinct completed batches
  };

  // `ledger` and `sessions` outlive the dispatcher. `seed`: for the order of shuffled datasets.
  Dispatcher(Ledger& ledger, Sessions& sessions, uint64_t seed)
      : ledger_(ledger), sessions_(sessions), datasets_(ledger, seed) {}

  // Reads datasets and leases from the ledger. Shards that were leased to sessions that have ended
  // are returned. Call it once, after Sessions::Load.
  Status Load(Counters counters, Time now);

  // Adds a dataset. If the name is registered already, the first registration stays in force and is
  // returned. InvalidArgument: see Dataset::Check.
  Result<const Dataset*> Register(DatasetSpec spec, Time now);
  // Discards all progress of a dataset and its leases. NotFound: no dataset has that name.
  Result<const Dataset*> Reset(const std::string& name, Time now);
  // The shard checkpoint of a dataset: docs/formats/shard-checkpoint.md. NotFound: no dataset has
  // that name.
  Result<std::string> Save(const std::string& name) const;
  // Restores a dataset from a shard checkpoint, and registers it if necessary. InvalidArgument:
  // `content` cannot be parsed. FailedPrecondition: the dataset has another size or shard size.
  Result<const Dataset*> Restore(const std::string& content, Time now);

  // Answers a call that requests shards, now or later: with shards, with Finished, or with Wait at
  // its deadline. REQUIRES: the session is open.
  void RequestShards(Waiter waiter, IfUnknown if_unknown, Time now);
  // The call `number` of `session` came again as `call`: answers the earlier one with Retry and
  // keeps its place. False: no such call waits.
  bool ReplaceWaiter(Incarnation session, uint64_t number, uint64_t call, LeaseReply reply);
  // The connection of a waiting call was closed. False: that call does not wait (any more).
  bool DropWaiter(uint64_t call, Time now);

  ReportVerdict Report(const Session& session, const ShardReport& report, Time now);
  // A report of the compatibility API, which names a lease by dataset and task number. Ignores
  // unknown tasks: their shards were returned before.
  void ReportTask(const std::string& dataset, int32_t task, ShardOutcome outcome,
                  const std::string& error, Time now);
  // Returns a shard whose lease did not reach its holder. Ignores leases that are not open.
  void GiveBack(LeaseId lease, Time now);
  // Returns all shards that a session holds and answers its waiting calls with Retry. Call it
  // before the session is closed.
  void Reclaim(Incarnation session, Time now);
  // Returns all shards that a session holds except those in `held`. The result is what it keeps.
  std::vector<LeaseId> KeepOnly(Incarnation session, const std::set<LeaseId>& held, Time now);

  // Answers calls whose deadlines have passed, and reclaims leases that hang.
  void Tick(Time now);
  // Answers each waiting call that can be answered. Call it after a replica started or ended.
  void SettleAll(Time now);

  // The lease as its holder received it; nullopt: it is not open (any more).
  std::optional<LeasedShard> Describe(LeaseId lease) const;

  // --task_fault_tolerance=false: a shard that fails, or whose holder is lost, is quarantined
  // instead of leased again. Call it before Load.
  void set_fault_tolerant(bool tolerant) { fault_tolerant_ = tolerant; }
  // A chief runs or will run again, and can take over the shards that others lose.
  void set_chief_expected(bool expected) { chief_expected_ = expected; }

  // A job with a model (ModelJob): the master leads all callers from dataset to dataset. Only
  // shards of `next_dataset` are leased. A call for another dataset is answered Wait at once, and
  // all calls are answered Finished at the end of the whole job.
  struct Lead {
    std::string next_dataset;
    bool finished = false;
    bool holds = false;   // no shard of next_dataset is leased yet: calls wait
    int64_t version = 0;  // LeasedShard::version of evaluations and exports
    bool operator==(const Lead&) const = default;
  };
  // Answers the calls that wait for something else.
  void SetLead(Lead lead, Time now);
  // Empty: no SetLead.
  std::string next_dataset() const { return lead_ ? lead_->next_dataset : ""; }
  // Called with each shard that is reported as done, before it is counted. An error: the shard has
  // failed.
  using ResultRule = std::function<Status(const Dataset&, const std::string& result)>;
  void set_result_rule(ResultRule rule) { result_rule_ = std::move(rule); }
  // No more shards of a dataset are leased: see Dataset::Close. REQUIRES: the dataset exists.
  void Close(const std::string& name);
  // The results of a dataset from ordinal `first` on. NotFound: no dataset has that name and that
  // generation.
  Result<ResultPage> GetResults(const std::string& name, uint32_t generation, uint64_t first) const;

  // See ParameterRule.
  void set_parameter_rule(ParameterRule::State state) { parameter_rule_.Set(state); }
  PsEpoch ps_epoch() const { return parameter_rule_.ps_epoch(); }
  checkpoint::ShardSet DoneShards() const { return parameter_rule_.DoneShards(datasets_); }
  int64_t Reopen(const checkpoint::ShardSet& covered, Time now);
  // Also false while shards of a closed dataset are leased.
  bool TrainingComplete() const;
  // All training is done, and survives the loss of all parameter servers.
  bool TrainingIsDurable() const { return parameter_rule_.durable() && TrainingComplete(); }
  // The lowest lease that is open; if none is, the next one.
  LeaseId floor() const;

  // See DatasetTable.
  void Resume() { datasets_.Resume(); }
  void CountRestAsNotTrained() { datasets_.CountRestAsNotTrained(); }
  bool AllFinished() const { return datasets_.AllFinished(); }
  bool AnythingLeft() const { return datasets_.AnythingLeft(); }
  bool BeginLeftoverRounds() { return datasets_.BeginLeftoverRounds(); }
  const DatasetTable::ByName& datasets() const { return datasets_.by_name(); }
  const Dataset* Find(const std::string& name) const { return datasets_.Find(name); }
  // Makes what changed part of the next commit.
  void Flush() { datasets_.Flush(); }
  // A session is about to be lost because of a failure: if the datasets of its leases are in a
  // round for leftover shards, that round does not count.
  void ForgiveRoundsOf(Incarnation session);

  const std::map<LeaseId, Lease>& leases() const { return leases_.all(); }
  int64_t LeasesOf(ReplicaRef replica) const { return leases_.CountOf(replica); }
  int64_t LeasesOf(const Dataset& dataset) const {
    return static_cast<int64_t>(leases_.OfDataset(dataset.id()).size());
  }
  const Counters& counters() const { return counters_; }
  size_t waiting() const { return waiters_.size(); }
  // See HangDetector.
  std::vector<std::pair<ReplicaRef, std::string>> TakeHungReplicas() {
    return hangs_.TakeHungReplicas();
  }
  // The replica has completed a shard since the last ForgetProgress.
  bool MadeProgress(ReplicaRef replica) const { return progressed_.contains(replica); }
  void ForgetProgress(ReplicaRef replica) { progressed_.erase(replica); }

 private:
  // Limits the work of one tick, because thousands of calls and leases may be due at once. The next
  // tick continues.
  static constexpr size_t kMostChecksATick = 1024;

  // These four keep the tables and the end rule in step.
  void AddLease(const LeaseRow& row, const Session* holder, Time now);
  Lease RemoveLease(LeaseId id);
  void AddWaiter(Waiter waiter, const Dataset* dataset);
  // Also lets the hang clocks of the session run on.
  Waiter RemoveWaiter(uint64_t call, Time now);

  // Answers each waiting call of a dataset that can be answered.
  void Settle(Dataset& dataset, Time now);
  // Leases shards to a waiting call and answers it. False: there is no shard for it.
  bool GrantTo(Dataset& dataset, const Waiter& waiter, Time now);
  std::optional<Dataset::TakenShard> TakeShard(Dataset& dataset, const Session& session);
  // Takes back the oldest lease that its holder may never have received. See LeaseTable.
  std::optional<Dataset::TakenShard> TakeSuspect(Dataset& dataset);
  LeasedShard Describe(const LeaseRow& row, const Dataset& dataset) const;
  void Finish(uint64_t call, Dataset& dataset, Time now);
  // The session and its dataset have got the end of the data.
  void NoteFinished(Incarnation session, Dataset* dataset);

  // Ends a lease with an outcome.
  void Complete(LeaseId id, ShardOutcome outcome, const std::string& error, Time now);
  // Ends the lease of a holder that is lost or hangs: the shard is leased again if faults are
  // tolerated.
  void LoseLease(LeaseId id, const std::string& why, Time now);
  void ReclaimHung(const HangDetector::Hung& hung, Time now);
  // Drops the leases of a generation that ends. Their shards are not returned.
  void VoidLeases(const Dataset& dataset);
  int32_t NextTask();

  Ledger& ledger_;
  Sessions& sessions_;
  Counters counters_;
  DatasetTable datasets_;
  LeaseTable leases_;
  WaiterQueue waiters_;
  HangDetector hangs_{leases_, waiters_, sessions_};
  std::map<DatasetId, EndRule> end_rules_;
  ParameterRule parameter_rule_;
  std::optional<Lead> lead_;  // nullopt: callers choose their datasets
  ResultRule result_rule_;
  std::set<ReplicaRef> progressed_;
  bool chief_expected_ = false;
  bool fault_tolerant_ = true;
};

}  // namespace edl::master
