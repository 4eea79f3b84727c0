#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/shard_set.h"
#include "master/shards/dataset_table.h"
#include "master/types.h"

namespace edl::master {

// What changes for training datasets when our own parameter servers keep the parameters: a shard is
// done only if its pushes were acknowledged in the current ps epoch, and no caller is answered
// Finished before the result is durable. docs/states/parameters.md. Until the first call of Set the
// rule applies to no dataset: the parameters are kept elsewhere.
//
// Confined: call it on the master's loop.
class ParameterRule {
 public:
  struct State {
    LedgerId ledger;  // names the ledger at the parameter servers
    PsEpoch ps_epoch;
    bool durable = false;  // everything that is done survives the loss of all servers
  };

  void Set(State state) { state_ = state; }
  // Both are 0 while the parameters are kept elsewhere.
  PsEpoch ps_epoch() const { return state_ ? state_->ps_epoch : PsEpoch(); }
  LedgerId ledger() const { return state_ ? state_->ledger : LedgerId(); }
  bool durable() const { return state_ && state_->durable; }

  bool AppliesTo(const Dataset& dataset) const;
  // The shard was pushed in an older ps epoch, so servers may have lost the pushes since: its
  // holder has to open it again. False for a program that pushes nothing under its leases.
  bool MustReopen(const Dataset& dataset, const ShardReport& report) const;
  // Calls that wait for the dataset are held, because some shards may have to be trained again.
  bool DelaysEnd(const Dataset& dataset) const;

  // The done shards of the datasets to which the rule applies.
  checkpoint::ShardSet DoneShards(const DatasetTable& datasets) const;
  // Servers lost parameters: every done shard that is not in `covered` is to be leased once more.
  // Returns their number.
  int64_t Reopen(const checkpoint::ShardSet& covered, const DatasetTable& datasets) const;
  // The rule applies to at least one dataset, and all such datasets are complete.
  bool TrainingComplete(const DatasetTable& datasets) const;

 private:
  std::optional<State> state_;
};

}  // namespace edl::master
