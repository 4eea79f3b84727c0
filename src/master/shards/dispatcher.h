#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "master/deadlines.h"
#include "master/ledger/ledger.h"
#include "master/sessions/session.h"
#include "master/shards/dataset.h"
#include "master/shards/participants.h"
#include "master/shards/shard_times.h"
#include "master/types.h"

namespace edl::master {

// An open lease.
struct Lease {
  LeaseRow row;
  ReplicaRef replica;  // of the holder
  Time since;          // of the hang clock: stands still while the holder waits
  Time granted_at;
  bool suspect = false;  // compatibility API: its grant may never have arrived
};

// A call that waits for a shard of a dataset.
struct Waiter {
  uint64_t call = 0;  // unique in this master life: the connection that waits
  Incarnation session;
  uint64_t number = 0;  // the caller's; 0 at the compatibility API
  std::string dataset;
  uint32_t at_most = 1;
  std::optional<Time> deadline;  // none: held until there is an answer (compatibility API)
  Time since;
  // Called once, when the answer is decided; it may leave only after the next commit.
  std::function<void(Answer, std::vector<LeasedShard>)> reply;
};

// Leases the shards of all datasets so that each is completed once, however often callers die, and
// ends every dataset without a deadlock: docs/states/shard.md.
//
// Confined: call it on the master's loop.
class Dispatcher {
 public:
  // A shard that takes longer than this, and than five times what most shards take, hangs. A
  // published client cannot say that it is alive, so there the first shard counts too.
  static constexpr Duration kHangAtLeast = std::chrono::seconds(300);
  // The same for our own clients while no shard has been done: nothing is known of the program.
  static constexpr Duration kHangAtFirst = std::chrono::seconds(3600);

  struct Counters {
    uint64_t next_lease = 1;
    int32_t next_task = 1;
    int64_t next_dataset = 1;
    int64_t version = 0;  // distinct completed batches
  };

  Dispatcher(Ledger& ledger, Sessions& sessions, uint64_t seed)
      : ledger_(ledger), sessions_(sessions), seed_(seed) {}

  // Reads datasets and leases back. Leases of sessions that are gone come back as shards.
  Status Load(Counters counters, Time now);

  // Makes a dataset known. The first to register wins: later ones get the spec in force, and a
  // different one is worth a warning.
  Result<const Dataset*> Register(DatasetSpec spec, Time now);
  Result<const Dataset*> Reset(const std::string& name, Time now);
  Result<std::string> Save(const std::string& name) const;
  // InvalidArgument: not a shard checkpoint, or of a dataset that is cut differently.
  Result<const Dataset*> Restore(const std::string& content, Time now);

  // Answers now or later: with shards, Finished, or Wait at the deadline. An unknown dataset is
  // answered at once unless `hold_unknown`.
  void Ask(Waiter waiter, bool hold_unknown, Time now);
  // Takes over the reply of a call that came again as `call`; false if no such call waits.
  bool ReplaceWaiter(Incarnation session, uint64_t number, uint64_t call,
                     std::function<void(Answer, std::vector<LeasedShard>)> reply);
  // The caller hung up. False: that call does not wait (any more).
  bool DropWaiter(uint64_t call, Time now);

  Verdict Report(const Session& session, const ShardReport& report, Time now);
  // By the compatibility API's names. Unknown ones are fine: reconciled already.
  void ReportTask(const std::string& dataset, int32_t task, Outcome outcome,
                  const std::string& error, Time now);
  // A grant that is known not to have arrived.
  void GiveBack(LeaseId lease, Time now);
  // Everything a session holds comes back, and its waiting calls are forgotten.
  void Reclaim(Incarnation session, Time now);
  // Returns all leases of a session except `held`.
  std::vector<LeaseId> KeepOnly(Incarnation session, const std::set<LeaseId>& held, Time now);

  // Deadlines and hang clocks.
  void Tick(Time now);
  // Looks again at who can be answered: after a replica came or went.
  void SettleAll(Time now);

  // The lease as its holder was given it; nullopt if it is open no more.
  std::optional<LeasedShard> Describe(LeaseId lease) const;

  // --task_fault_tolerance=false: a shard that fails, or whose holder is lost, is quarantined
  // instead of being leased again. Before Load.
  void set_fault_tolerant(bool tolerant) { fault_tolerant_ = tolerant; }

  // The chief is, or will again be, there to take what others lose.
  void set_chief_expected(bool expected) { chief_expected_ = expected; }

  // Where parameters are kept by servers of ours, a shard of a training dataset is done only if
  // its pushes were acknowledged in the current epoch of the servers, and no caller is told the end
  // before it is durable. docs/states/parameters.md.
  struct ParameterRule {
    uint64_t ledger = 0;
    uint64_t ps_epoch = 0;
    bool durable = false;  // all that is done survives the loss of every server
  };
  void set_parameter_rule(ParameterRule rule) { parameter_rule_ = rule; }
  // The current epoch of the parameter servers; 0: parameters are kept elsewhere.
  uint64_t ps_epoch() const { return parameter_rule_ ? parameter_rule_->ps_epoch : 0; }
  // The done shards of training datasets.
  checkpoint::ShardSet DoneShards() const;
  // Parameters were lost: done shards that `covered` does not have are leased once more.
  int64_t Reopen(const checkpoint::ShardSet& covered, Time now);
  // There are training datasets, and every shard of them is done.
  bool TrainingComplete() const;
  // The lowest lease that is open, or will be.
  LeaseId floor() const;

  // The job goes on by `train --resume`: shards that were quarantined are tried again, and what was
  // counted as not trained is left again. Once, after Load.
  void Resume();
  // Shards that nobody holds or will ask for, once no replica is left: counts them as not trained.
  void GiveUpRest();
  // There are datasets, and all of them are done.
  bool AllFinished() const;
  // Some dataset has shards to hand out.
  bool AnythingLeft() const;
  // Some dataset with shards left has told Finished to a caller, so that the rest was in hands
  // that ended without reporting it, and the last round for such a rest, if any, got something
  // done: marks that one more round begins.
  bool GrantLeftoverRound();
  // A session with leases is lost, not by its own will.
  void ForgiveRoundsOf(Incarnation session);

  const std::map<std::string, std::unique_ptr<Dataset>>& datasets() const { return datasets_; }
  const Dataset* Find(const std::string& name) const;
  const std::map<LeaseId, Lease>& leases() const { return leases_; }
  int64_t LeasesOf(ReplicaRef replica) const;
  int64_t LeasesOf(const Dataset& dataset) const;
  // Replicas whose shard hung since the last call, each with the reason for people.
  std::vector<std::pair<ReplicaRef, std::string>> TakeHung() { return std::exchange(hung_, {}); }
  const Counters& counters() const { return counters_; }
  size_t waiting() const { return by_call_.size(); }
  // True once since a replica last reported a batch: what resets its line of idle lives.
  bool MadeProgress(ReplicaRef replica) const { return progressed_.contains(replica); }
  void ForgetProgress(ReplicaRef replica) { progressed_.erase(replica); }

  void Flush();

 private:
  using WaiterList = std::list<Waiter>;

  // What is open of one dataset. There is one for a name that is only waited for, too.
  struct Queue {
    WaiterList waiters;  // in the order of their arrival
    Participants participants;
    std::set<LeaseId> leases;
    std::set<LeaseId> suspects;           // compatibility API
    std::set<Incarnation> waiting_again;  // were told Finished before, and wait
  };
  struct Place {
    Queue* queue = nullptr;
    WaiterList::iterator waiter;
  };

  Dataset* FindById(DatasetId id);
  const Dataset* FindById(DatasetId id) const;
  Queue& QueueOf(const Dataset& dataset) { return queues_[dataset.spec().name]; }
  void AddDataset(std::unique_ptr<Dataset> dataset);
  void AddLease(const LeaseRow& row, Time now);
  // Forgets it here, not in the ledger.
  Lease RemoveLease(LeaseId id);
  void AddWaiter(Waiter waiter);
  // Leases of a generation that ends: nobody's any more, and not to be leased again.
  void VoidLeases(const Dataset& dataset);
  void Settle(Dataset& dataset, Time now);
  bool GrantTo(Dataset& dataset, Waiter& waiter, Time now);
  // Whether its shards change parameters that are the business of the rule.
  bool IsRuled(const Dataset& dataset) const;
  std::optional<Dataset::Taken> TakeSuspect(Dataset& dataset);
  void ApplyEndRule(Dataset& dataset, Time now);
  void Finish(uint64_t call, Dataset& dataset, Time now);
  // Removes the waiter and lets its holder's hang clocks run on.
  Waiter EndWait(uint64_t call, Time now);
  void Complete(LeaseId id, Outcome outcome, const std::string& error, Time now);
  // The holder of a lease is gone, or hangs: the shard is leased again where faults are tolerated.
  void LoseLease(LeaseId id, const std::string& why, Time now);
  void MarkSuspects(const Lease& reported);
  int32_t NextTask();
  static Time BusySince(const Lease& lease, const Session* session);
  Duration HangLimit(bool compat_api) const;
  void CheckHangs(Time now);
  void ReclaimHung(LeaseId id, Duration limit, Time now);

  // How often the leases of a session are checked at least: the limit moves.
  static constexpr Duration kHangCheck = std::chrono::seconds(60);
  // The next tick goes on with the others: thousands of calls and leases may be due at once.
  static constexpr size_t kMostChecksATick = 1024;

  Ledger& ledger_;      // outlives this
  Sessions& sessions_;  // outlives this
  uint64_t seed_;
  Counters counters_;
  std::map<std::string, std::unique_ptr<Dataset>> datasets_;
  std::map<DatasetId, Dataset*> by_id_;
  std::map<LeaseId, Lease> leases_;
  std::map<Incarnation, std::set<LeaseId>> held_;
  std::map<ReplicaRef, int64_t> leases_of_;
  std::map<std::pair<DatasetId, int32_t>, LeaseId> tasks_;
  std::map<std::string, Queue> queues_;
  std::map<uint64_t, Place> by_call_;
  std::map<Incarnation, std::set<uint64_t>> calls_of_;
  Deadlines<uint64_t> wait_deadlines_;
  Deadlines<Incarnation> hang_checks_;  // of sessions that hold leases
  std::set<ReplicaRef> progressed_;
  std::set<DatasetId> chief_used_;
  ShardTimes shard_times_;
  std::map<LeaseId, Time> reclaimed_as_hung_;  // and when they were granted; a few at most
  Duration known_slow_{0};  // twice what a shard took that was wrongly taken for hung
  std::vector<std::pair<ReplicaRef, std::string>> hung_;
  bool chief_expected_ = false;
  bool fault_tolerant_ = true;
  std::optional<ParameterRule> parameter_rule_;
};

}  // namespace edl::master
