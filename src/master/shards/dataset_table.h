#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "master/ledger/ledger.h"
#include "master/shards/dataset.h"
#include "master/types.h"

namespace edl::master {

// All datasets of the job, by name and by id, and the questions about all of them together. A
// dataset is never removed, so pointers to datasets stay valid.
//
// Confined: call it on the master's loop.
class DatasetTable {
 public:
  using ByName = std::map<std::string, std::unique_ptr<Dataset>>;

  // `seed` determines the order of shuffled datasets. `ledger` outlives the table.
  DatasetTable(Ledger& ledger, uint64_t seed) : ledger_(ledger), seed_(seed) {}

  // Reads the datasets from the ledger. Call it once, first.
  Status Load();
  // REQUIRES: Dataset::Check(spec), and neither name nor id are in the table.
  Dataset& Add(DatasetId id, DatasetSpec spec);

  // Null: no dataset has that name.
  Dataset* Find(const std::string& name);
  const Dataset* Find(const std::string& name) const;
  // REQUIRES: a dataset has that id.
  Dataset& Get(DatasetId id) const;
  const ByName& by_name() const { return by_name_; }

  // There are datasets, and all of them are complete.
  bool AllFinished() const;
  // Some dataset has shards that are not done and were not counted as not trained.
  bool AnythingLeft() const;

  // For datasets that were answered Finished although shards are left, because the holders ended
  // without a report: begins one more round for the leftover shards, unless the last round
  // completed nothing. Returns whether a round began.
  bool BeginLeftoverRounds();
  // The job continues by `train --resume`: quarantined shards are leased again, and records that
  // were counted as not trained are left again.
  void Resume();
  // Counts all records that are left as not trained. Call it when no replica is left.
  void CountRestAsNotTrained();

  // Writes what changed since the last call to the ledger.
  void Flush();

 private:
  Dataset& Insert(DatasetRow row);

  Ledger& ledger_;
  const uint64_t seed_;
  ByName by_name_;
  std::map<DatasetId, Dataset*> by_id_;
};

}  // namespace edl::master
