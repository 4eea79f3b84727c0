#include "master/ledger_report.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

namespace edl::master {
namespace {

using nlohmann::json;

json Describe(const DatasetRow& row) {
  const int64_t per_shard = row.spec.batch_size * row.spec.batches_per_shard;
  return {{"name", row.spec.name},
          {"generation", row.generation},
          {"size", row.spec.size},
          {"batch_size", row.spec.batch_size},
          {"batches_per_shard", row.spec.batches_per_shard},
          {"records_per_shard", per_shard},
          {"shards_per_epoch", (row.spec.size + per_shard - 1) / per_shard},
          {"epochs", row.spec.epochs},
          {"task_type", row.spec.task_type},
          {"leasing_epoch", row.epoch},
          {"records_done", row.records_done},
          {"shards_done", row.shards_done},
          {"shards_repeated", row.shards_repeated},
          {"records_not_trained", row.records_not_trained},
          {"epochs_done", json::array()},
          {"done", json::object()},
          {"leases", json::array()},
          {"returned", json::array()},
          {"set_aside", json::array()}};
}

json& Find(json& datasets, const std::vector<DatasetRow>& rows, DatasetId id) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].id == id) return datasets[i];
  }
  CHECK(false, "no dataset has id {}", id);
}

}  // namespace

Result<std::string> LedgerJson(Ledger& ledger) {
  json out = {{"schema_version", Ledger::kSchemaVersion}};
  json datasets = json::array();
  EDL_ASSIGN_OR_RETURN(const auto rows, ledger.Datasets());
  for (const DatasetRow& row : rows) datasets.push_back(Describe(row));
  EDL_ASSIGN_OR_RETURN(const auto done, ledger.Done());
  for (const DoneRow& row : done) {
    json& dataset = Find(datasets, rows, row.dataset);
    const json range = {row.range.first, row.range.last};
    if (row.epoch == DoneRow::kEpochs) {
      dataset["epochs_done"].push_back(range);
    } else {
      dataset["done"][std::to_string(row.epoch)].push_back(range);
    }
  }
  EDL_ASSIGN_OR_RETURN(const auto leases, ledger.Leases());
  for (const LeaseRow& row : leases) {
    Find(datasets, rows, row.dataset)["leases"].push_back({{"lease", row.lease.value()},
                                                           {"epoch", row.key.epoch},
                                                           {"ordinal", row.key.ordinal},
                                                           {"holder", row.holder.value()},
                                                           {"failures", row.failures}});
  }
  EDL_ASSIGN_OR_RETURN(const auto returned, ledger.Returned());
  for (const ReturnedRow& row : returned) {
    Find(datasets, rows, row.dataset)["returned"].push_back({{"epoch", row.key.epoch},
                                                             {"ordinal", row.key.ordinal},
                                                             {"failures", row.failures},
                                                             {"failed_by", row.failed_by}});
  }
  EDL_ASSIGN_OR_RETURN(const auto set_aside, ledger.SetAside());
  for (const SetAsideRow& row : set_aside) {
    Find(datasets, rows, row.dataset)["set_aside"].push_back(
        {{"epoch", row.key.epoch}, {"ordinal", row.key.ordinal}, {"error", row.error}});
  }
  out["datasets"] = std::move(datasets);
  EDL_ASSIGN_OR_RETURN(const auto sessions, ledger.Sessions());
  out["sessions"] = json::array();
  for (const SessionRow& row : sessions) {
    out["sessions"].push_back({{"incarnation", row.incarnation.value()},
                               {"role", job::NameOf(row.replica.role)},
                               {"replica_id", row.replica.id},
                               {"door", row.old_door ? "old" : "ours"},
                               {"process", row.process}});
  }
  EDL_ASSIGN_OR_RETURN(const auto replicas, ledger.Replicas());
  out["replicas"] = json::array();
  for (const ReplicaRow& row : replicas) {
    out["replicas"].push_back({{"name", row.name},
                               {"role", job::NameOf(row.replica.role)},
                               {"id", row.replica.id},
                               {"index", row.index},
                               {"state", job::NameOf(row.state)},
                               {"reason", row.reason}});
  }
  EDL_ASSIGN_OR_RETURN(const auto meta, ledger.Meta());
  if (auto counters = meta.find("counters"); counters != meta.end()) {
    out["counters"] = json::parse(counters->second, nullptr, false);
  }
  return out.dump(2, ' ', false, json::error_handler_t::replace);
}

Result<std::string> ReadLedgerJson(const std::string& path) {
  if (!std::filesystem::exists(path)) return NotFound("there is no ledger at {}", path);
  EDL_ASSIGN_OR_RETURN(Ledger ledger, Ledger::OpenReadOnly(path));
  return LedgerJson(ledger);
}

}  // namespace edl::master
