#include "master/ledger/ledger_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "telemetry/store.h"
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "master/ledger/damaged_entry.h"

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
          {"task_type", NameOf(row.spec.task_type)},
          {"leasing_epoch", row.epoch},
          {"records_done", row.records_done},
          {"shards_done", row.shards_done},
          {"shards_repeated", row.shards_repeated},
          {"records_not_trained", row.records_not_trained},
          {"epochs_done", json::array()},
          {"done", json::object()},
          {"leases", json::array()},
          {"returned", json::array()},
          {"quarantined", json::array()},
          {"results", json::array()}};
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
  EDL_ASSIGN_OR_RETURN(const auto quarantined, ledger.Quarantined());
  for (const QuarantinedRow& row : quarantined) {
    Find(datasets, rows, row.dataset)["quarantined"].push_back(
        {{"epoch", row.key.epoch}, {"ordinal", row.key.ordinal}, {"error", row.error}});
  }
  EDL_ASSIGN_OR_RETURN(const auto results, ledger.ResultSizes());
  for (const Ledger::ResultSize& row : results) {
    Find(datasets, rows, row.dataset)["results"].push_back(
        {{"ordinal", row.ordinal}, {"bytes", row.bytes}});
  }
  out["datasets"] = std::move(datasets);
  EDL_ASSIGN_OR_RETURN(const auto sessions, ledger.Sessions());
  out["sessions"] = json::array();
  for (const SessionRow& row : sessions) {
    out["sessions"].push_back({{"incarnation", row.incarnation.value()},
                               {"role", job::NameOf(row.replica.role)},
                               {"replica_id", row.replica.id},
                               {"api", row.compat_api ? "compat" : "own"},
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
    out["counters"] = ReadJson(counters->second);
  }
  return Dump(out, 2);
}

Result<std::string> ReadLedgerJson(const std::string& path) {
  EDL_ASSIGN_OR_RETURN(Ledger ledger, Ledger::ReadCopy(path));
  return LedgerJson(ledger);
}

Result<job::JobView> LedgerView(Ledger& ledger) {
  EDL_ASSIGN_OR_RETURN(const auto meta, ledger.Meta());
  job::JobView view;
  // Shown only: a ledger without this entry is complete.
  if (const auto found = meta.find("job"); found != meta.end()) {
    if (Result<job::JobView> shown = job::JobView::FromJson(found->second); shown.ok()) {
      view = *std::move(shown);
    }
  }
  if (const auto found = meta.find("counters"); found != meta.end()) {
    const json counters = ReadJson(found->second);
    if (!counters.is_object()) return DamagedEntry("counters", "expected a JSON object");
    view.version = counters.value("version", int64_t{0});
  }
  if (const auto found = meta.find("state"); found != meta.end()) {
    const auto state = job::JobStateFromName(found->second);
    if (!state) return DamagedEntry("state", fmt::format("'{}' is not a job state", found->second));
    view.state = *state;
  }
  if (const auto found = meta.find("outcome"); found != meta.end() && job::IsFinal(view.state)) {
    const json outcome = ReadJson(found->second);
    if (outcome.is_object()) {
      view.reason = outcome.value("reason", "");
      view.success_rule = outcome.value("success_rule", "");
      view.ended_at = outcome.value("ended_at", 0.0);
    }
  }
  view.replicas.clear();
  view.datasets.clear();
  EDL_ASSIGN_OR_RETURN(const auto rows, ledger.Datasets());
  std::map<DatasetId, int64_t> leases;
  std::map<DatasetId, int64_t> quarantined;
  EDL_ASSIGN_OR_RETURN(const auto lease_rows, ledger.Leases());
  for (const LeaseRow& row : lease_rows) ++leases[row.dataset];
  EDL_ASSIGN_OR_RETURN(const auto aside_rows, ledger.Quarantined());
  for (const QuarantinedRow& row : aside_rows) ++quarantined[row.dataset];
  for (const DatasetRow& row : rows) {
    const bool endless = row.spec.epochs <= 0;
    view.datasets.push_back(
        {.name = row.spec.name,
         .task_type = std::string(NameOf(row.spec.task_type)),
         .size = row.spec.size,
         .epochs = std::max<int64_t>(0, row.spec.epochs),
         .epoch = endless ? row.epoch : std::min(row.epoch, row.spec.epochs - 1),
         .records_done = row.records_done,
         .records_total = endless ? 0 : row.spec.size * row.spec.epochs,
         .shards_done = row.shards_done,
         .leases = leases[row.id],
         .shards_repeated = row.shards_repeated,
         .shards_quarantined = quarantined[row.id],
         .records_not_trained = row.records_not_trained});
  }
  return view;
}

Result<job::JobView> ReadLedgerView(const std::string& path) {
  EDL_ASSIGN_OR_RETURN(Ledger ledger, Ledger::ReadCopy(path));
  return LedgerView(ledger);
}

Result<telemetry::Curves> ReadLedgerCurves(const std::string& path, const telemetry::Query& query) {
  EDL_ASSIGN_OR_RETURN(Ledger ledger, Ledger::ReadCopy(path));
  EDL_ASSIGN_OR_RETURN(const telemetry::Stored stored, ledger.Telemetry());
  telemetry::Store store;
  EDL_RETURN_IF_ERROR(store.Load(stored));
  return store.Read(query);
}

}  // namespace edl::master
