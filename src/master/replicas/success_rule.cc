#include "master/replicas/success_rule.h"

#include <fmt/format.h>

namespace edl::master {
namespace {

// Why the records that `dataset` has left are a failure; empty: they are not.
std::string FailureOf(const std::string& name, const Dataset& dataset) {
  const int64_t total = dataset.spec().size * dataset.spec().epochs;
  const int64_t left = dataset.row().records_not_trained;
  if (dataset.row().records_done == 0) {
    return fmt::format(
        "dataset '{}': {} of {} records were never reported; does the program call "
        "report_batch_done()?",
        name, left, total);
  }
  // The rest was leased once more after the end of data was answered, and was returned again: it is
  // a batch that is not full.
  if (dataset.row().told_finished) return "";
  return fmt::format(
      "dataset '{}': all workers exited with 0 while {} of {} records were left; a program that "
      "may end earlier calls finish() of its data shard service, or gives --max_step",
      name, left, total);
}

}  // namespace

SuccessRule RuleOfSuccess(const std::map<std::string, std::unique_ptr<Dataset>>& datasets,
                          const std::string& declared_end) {
  SuccessRule rule;
  int64_t reported = 0;
  int64_t left = 0;
  size_t quarantined = 0;
  bool endless = false;
  for (const auto& [name, dataset] : datasets) {
    const TaskType type = dataset->spec().task_type;
    if (type == TaskType::kEvaluationMerge || type == TaskType::kExport) continue;  // no records
    const int64_t not_trained = dataset->row().records_not_trained;
    reported += dataset->row().records_done;
    endless = endless || dataset->endless();
    quarantined += dataset->quarantined().size();
    if (!dataset->quarantined().empty()) {
      rule.remarks.push_back(
          fmt::format("dataset '{}': {} shard(s) were quarantined and not trained; the first "
                      "error: {}",
                      name, dataset->quarantined().size(), dataset->quarantined().begin()->second));
    }
    if (not_trained == 0) continue;
    left += not_trained;
    rule.remarks.push_back(fmt::format("dataset '{}': {} of {} records were not trained", name,
                                       not_trained, dataset->spec().size * dataset->spec().epochs));
    // Evaluation need not use all data.
    if (dataset->spec().task_type == TaskType::kEvaluation || !rule.failure.empty()) continue;
    if (declared_end.empty()) rule.failure = FailureOf(name, *dataset);
  }
  if (!rule.failure.empty()) return rule;
  if (datasets.empty()) {
    rule.why = "all workers exited with 0; the program uses no dataset";
  } else if (left == 0 && !endless && quarantined > 0) {
    rule.why = fmt::format("{} records were reported; {} shard(s) were quarantined and not trained",
                           reported, quarantined);
  } else if (left == 0 && !endless) {
    rule.why = fmt::format("all {} records were reported", reported);
  } else if (!declared_end.empty()) {
    rule.why = "the program declared its end: " + declared_end;
  } else if (left == 0) {
    rule.why = "all workers exited with 0, and the data has no end";
  } else {
    rule.why = fmt::format(
        "{} records were reported; the other {} were handed out once more and "
        "left again",
        reported, left);
  }
  return rule;
}

}  // namespace edl::master
