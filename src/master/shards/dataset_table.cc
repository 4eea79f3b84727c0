#include "master/shards/dataset_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "master/shards/permutation.h"

namespace edl::master {

Status DatasetTable::Load() {
  EDL_ASSIGN_OR_RETURN(std::vector<DatasetRow> datasets, ledger_.Datasets());
  for (DatasetRow& row : datasets) {
    // A reply of the compatibility API may have been lost with the last process of the master, and
    // its caller cannot say so.
    Insert(std::move(row)).ForgiveLeftoverRound();
  }
  EDL_ASSIGN_OR_RETURN(const std::vector<DoneRow> done, ledger_.Done());
  for (const DoneRow& row : done) Get(row.dataset).LoadDone(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<DoneRow> restored, ledger_.Restored());
  for (const DoneRow& row : restored) Get(row.dataset).LoadRestored(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<QuarantinedRow> quarantined, ledger_.Quarantined());
  for (const QuarantinedRow& row : quarantined) Get(row.dataset).LoadQuarantined(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<ReturnedRow> returned, ledger_.Returned());
  for (const ReturnedRow& row : returned) Get(row.dataset).LoadReturned(row);
  return Ok();
}

Dataset& DatasetTable::Add(DatasetId id, DatasetSpec spec) {
  DatasetRow row{.id = id, .spec = std::move(spec)};
  row.seed = Mix(seed_, static_cast<uint64_t>(id.value()));
  ledger_.Put(row);
  return Insert(std::move(row));
}

Dataset& DatasetTable::Insert(DatasetRow row) {
  auto dataset = std::make_unique<Dataset>(std::move(row), ledger_);
  Dataset& inserted = *dataset;
  by_id_[inserted.id()] = &inserted;
  by_name_[inserted.spec().name] = std::move(dataset);
  return inserted;
}

Dataset* DatasetTable::Find(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

const Dataset* DatasetTable::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

Dataset& DatasetTable::Get(DatasetId id) const {
  const auto found = by_id_.find(id);
  CHECK(found != by_id_.end(), "no dataset has id {}", id);
  return *found->second;
}

bool DatasetTable::AllFinished() const {
  return !by_name_.empty() &&
         std::ranges::all_of(by_name_, [](const auto& entry) { return entry.second->Complete(); });
}

bool DatasetTable::AnythingLeft() const {
  return std::ranges::any_of(by_name_, [](const auto& entry) {
    return !entry.second->endless() && !entry.second->Complete() &&
           entry.second->row().records_not_trained == 0;
  });
}

bool DatasetTable::BeginLeftoverRounds() {
  bool began = false;
  for (auto& [name, dataset] : by_name_) {
    if (dataset->endless() || dataset->Complete() || !dataset->row().told_finished ||
        dataset->row().leftover_at == dataset->records_trained()) {
      continue;
    }
    dataset->BeginLeftoverRound();
    began = true;
  }
  return began;
}

void DatasetTable::Resume() {
  for (auto& [name, dataset] : by_name_) dataset->Resume();
}

void DatasetTable::CountRestAsNotTrained() {
  for (auto& [name, dataset] : by_name_) {
    if (!dataset->endless() && !dataset->Complete()) dataset->CountRestAsNotTrained();
  }
}

void DatasetTable::Flush() {
  for (auto& [name, dataset] : by_name_) dataset->Flush();
}

}  // namespace edl::master
