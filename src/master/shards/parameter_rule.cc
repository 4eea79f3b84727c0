#include "master/shards/parameter_rule.h"

namespace edl::master {

bool ParameterRule::AppliesTo(const Dataset& dataset) const {
  return state_.has_value() && dataset.spec().task_type == TaskType::kTraining;
}

bool ParameterRule::MustReopen(const Dataset& dataset, const ShardReport& report) const {
  return report.outcome == ShardOutcome::kDone && report.ps_epoch != PsEpoch() &&
         AppliesTo(dataset) && report.ps_epoch < state_->ps_epoch;
}

bool ParameterRule::DelaysEnd(const Dataset& dataset) const {
  return AppliesTo(dataset) && (!dataset.Complete() || !state_->durable);
}

checkpoint::ShardSet ParameterRule::DoneShards(const DatasetTable& datasets) const {
  checkpoint::ShardSet done;
  for (const auto& [name, dataset] : datasets.by_name()) {
    if (AppliesTo(*dataset)) done.datasets[dataset->id()] = dataset->DoneShards();
  }
  return done;
}

int64_t ParameterRule::Reopen(const checkpoint::ShardSet& covered,
                              const DatasetTable& datasets) const {
  int64_t reopened = 0;
  for (const auto& [name, dataset] : datasets.by_name()) {
    if (!AppliesTo(*dataset)) continue;
    const auto found = covered.datasets.find(dataset->id());
    const bool is_covered = found != covered.datasets.end();
    reopened += dataset->Reopen(is_covered ? found->second : checkpoint::ShardSet::Dataset{});
  }
  return reopened;
}

bool ParameterRule::TrainingComplete(const DatasetTable& datasets) const {
  bool any = false;
  for (const auto& [name, dataset] : datasets.by_name()) {
    if (!AppliesTo(*dataset)) continue;
    if (!dataset->Complete()) return false;
    any = true;
  }
  return any;
}

}  // namespace edl::master
