#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "master/ledger/ledger.h"
#include "master/shards/dispatcher.h"

namespace edl::master {

// Leads a job with --model_def from dataset to dataset: training, evaluations while it trains and
// at its end, the export; or the only work of `elasticdl evaluate` and `elasticdl predict`.
// docs/states/model.md, docs/adr/0028-jobs-of-a-model.md. It does nothing in other jobs.
//
// All decisions follow from the shards of the datasets and from the entry "model" of the ledger,
// which is written in the same commit as the shards that caused a decision. So a new master
// continues where the last one was.
//
// Confined: call it on the master's loop.
class ModelJob {
 public:
  static constexpr const char* kTraining = "training";
  static constexpr const char* kEvaluation = "evaluation";
  static constexpr const char* kMerge = "evaluation_merge";
  static constexpr const char* kPrediction = "prediction";
  static constexpr const char* kExport = "export";
  // So many of the last evaluations are kept.
  static constexpr size_t kMostEvaluations = 100;

  // All outlive it.
  ModelJob(Ledger& ledger, Dispatcher& dispatcher, const job::JobSpec& spec)
      : ledger_(ledger), dispatcher_(dispatcher), spec_(spec) {}

  bool enabled() const { return spec_.model.has_value(); }

  // `saved` is what Flush wrote; empty: the ledger is new. Registers the datasets of the master.
  // Call it once, after the dispatcher and the parameters are loaded.
  Status Load(const std::string& saved, Time now);

  // InvalidArgument: workers of this job may not register such a dataset. Sets what is the same in
  // every job with a model.
  Status CheckRegistration(DatasetSpec& spec) const;

  // Makes the decisions that follow from the state of the datasets: opens, repeats and ends
  // evaluations, ends training at --max_step, and chooses the next dataset. Call it after reports
  // and before each commit.
  void Update(Time now);
  // A worker declared the end of training, whatever data is left.
  void EndTraining(Time now);
  void Flush();

  // All work is done: workers are answered Finished.
  bool done() const { return state_.done; }
  // Why the job cannot go on; nullopt while it can.
  const std::optional<std::string>& failure() const { return failure_; }
  std::string next_dataset() const { return dispatcher_.next_dataset(); }

  // The last evaluations, oldest first.
  const std::vector<job::EvaluationView>& evaluations() const { return state_.evaluations; }
  // Rises with each evaluation. 0: there is none.
  uint64_t evaluation_number() const { return evaluation_number_; }

 private:
  struct Evaluation {
    int64_t version = 0;
    PsEpoch ps_epoch;   // of the parameters; a restore makes the evaluation start again
    bool last = false;  // after training, or the only one of `elasticdl evaluate`
  };
  struct State {
    std::optional<Evaluation> open;
    int64_t opened_at = 0;  // the version at which the last evaluation by steps opened
    bool last_evaluation_done = false;
    bool done = false;
    std::vector<job::EvaluationView> evaluations;
  };

  Status RegisterOwn(const char* name, TaskType type, Time now);
  // The dispatcher's rule: takes the result of a merge.
  Status OnResult(const Dataset& dataset, const std::string& result);
  void FindFailure();
  // Training is durable, or all is predicted; an evaluation job has no other work.
  bool MainWorkIsDone() const;
  bool NeedsLastEvaluation() const {
    return spec_.model->evaluates() && !state_.last_evaluation_done;
  }
  bool IsEvaluationDue() const;
  void UpdateEvaluation(bool main_done, Time now);
  void Open(Evaluation evaluation, Time now);
  void RecordEvaluation();
  // Parameters were lost after training was done: what follows training is void.
  void ReturnToTraining(Time now);
  std::string NextDataset(bool main_done) const;
  int64_t version() const;

  Ledger& ledger_;
  Dispatcher& dispatcher_;
  const job::JobSpec& spec_;
  State state_;
  std::optional<job::EvaluationView> merged_;  // reported, and not recorded yet
  std::optional<std::string> failure_;
  uint64_t evaluation_number_ = 0;
  bool dirty_ = false;
};

}  // namespace edl::master
