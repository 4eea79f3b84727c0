#include "master/model/model_job.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"
#include "master/model/evaluation.h"

namespace edl::master {
namespace {

using nlohmann::json;

bool IsComplete(const Dataset* dataset) { return dataset != nullptr && dataset->Complete(); }

}  // namespace

Status ModelJob::Load(const std::string& saved, Time now) {
  if (!enabled()) return Ok();
  if (!saved.empty()) {
    const json in = ReadJson(saved);
    if (!in.is_object()) return DataLoss("cannot parse the entry 'model' of the ledger");
    state_.opened_at = in.value("opened_at", int64_t{0});
    state_.last_evaluation_done = in.value("last_evaluation_done", false);
    state_.done = in.value("done", false);
    if (const auto open = in.find("open"); open != in.end() && open->is_object()) {
      state_.open = Evaluation{.version = open->value("version", int64_t{0}),
                               .ps_epoch = PsEpoch(open->value("ps_epoch", uint64_t{0})),
                               .last = open->value("last", false)};
    }
    EDL_ASSIGN_OR_RETURN(state_.evaluations,
                         job::EvaluationsFromJson(Dump(in.value("evaluations", json::array()))));
    evaluation_number_ = state_.evaluations.size();
  }
  dispatcher_.set_result_rule([this](const Dataset& dataset, const std::string& result) {
    return OnResult(dataset, result);
  });
  if (spec_.model->evaluates()) {
    EDL_RETURN_IF_ERROR(RegisterOwn(kMerge, TaskType::kEvaluationMerge, now));
  }
  if (spec_.model->exports()) {
    EDL_RETURN_IF_ERROR(RegisterOwn(kExport, TaskType::kExport, now));
  }
  return Ok();
}

Status ModelJob::RegisterOwn(const char* name, TaskType type, Time now) {
  return dispatcher_
      .Register({.name = name,
                 .size = 1,
                 .batch_size = 1,
                 .batches_per_shard = 1,
                 .epochs = 1,
                 .task_type = type},
                now)
      .status();
}

void ModelJob::Flush() {
  if (!dirty_) return;
  json out = {{"opened_at", state_.opened_at},
              {"last_evaluation_done", state_.last_evaluation_done},
              {"done", state_.done},
              {"evaluations", ReadJson(job::ToJson(state_.evaluations))}};
  if (state_.open) {
    out["open"] = {{"version", state_.open->version},
                   {"ps_epoch", state_.open->ps_epoch.value()},
                   {"last", state_.open->last}};
  }
  ledger_.PutMeta("model", Dump(out));
  dirty_ = false;
}

Status ModelJob::CheckRegistration(DatasetSpec& spec) const {
  if (!enabled()) return Ok();
  const job::ModelSpec& model = *spec_.model;
  if (spec.name == kMerge || spec.name == kExport) {
    return InvalidArgument("dataset '{}' is registered by the master, not by workers", spec.name);
  }
  const bool known = (spec.name == kTraining && model.trains()) ||
                     (spec.name == kEvaluation && model.evaluates()) ||
                     (spec.name == kPrediction && model.type == job::ModelJobType::kPrediction);
  if (!known) {
    return InvalidArgument(
        "dataset '{}' cannot be registered: a job with --model_def has the datasets training, "
        "evaluation (with --validation_data) and prediction (`elasticdl predict`)",
        spec.name);
  }
  if (NameOf(spec.task_type) != spec.name) {
    return InvalidArgument("dataset '{}' has task type '{}'; in a job with --model_def it is '{}'",
                           spec.name, NameOf(spec.task_type), spec.name);
  }
  // --num_epochs is for training.
  if (spec.name != kTraining) spec.epochs = 1;
  return Ok();
}

Status ModelJob::OnResult(const Dataset& dataset, const std::string& result) {
  if (dataset.spec().name != kMerge || !state_.open) return Ok();
  EDL_ASSIGN_OR_RETURN(merged_, ParseEvaluation(state_.open->version, result));
  return Ok();
}

void ModelJob::FindFailure() {
  for (const char* name : {kEvaluation, kMerge, kExport}) {
    const Dataset* dataset = dispatcher_.Find(name);
    if (dataset == nullptr || dataset->quarantined().empty()) continue;
    const auto& [key, error] = *dataset->quarantined().begin();
    LeasedShard shard{.key = key};
    dataset->Fill(shard);
    const std::string what =
        dataset->spec().task_type == TaskType::kEvaluation
            ? fmt::format("the evaluation of records {} to {} failed", shard.start, shard.end - 1)
        : dataset->spec().task_type == TaskType::kEvaluationMerge
            ? "merging the metrics of an evaluation failed"
            : fmt::format("the export to {} failed", spec_.model->output);
    failure_ = fmt::format("{}: {}", what, error.empty() ? "no error was given" : error);
    return;
  }
}

int64_t ModelJob::version() const {
  return spec_.model->trains() ? dispatcher_.counters().version : spec_.model->init_version;
}

bool ModelJob::MainWorkIsDone() const {
  switch (spec_.model->type) {
    case job::ModelJobType::kTraining:
      return dispatcher_.TrainingIsDurable();
    case job::ModelJobType::kEvaluation:
      return true;
    case job::ModelJobType::kPrediction:
      return IsComplete(dispatcher_.Find(kPrediction));
  }
  return true;
}

void ModelJob::EndTraining(Time now) {
  if (!enabled() || dispatcher_.Find(kTraining) == nullptr) return;
  dispatcher_.Close(kTraining);
  Update(now);
}

void ModelJob::Update(Time now) {
  if (!enabled() || failure_) return;
  FindFailure();
  if (failure_) return;
  const Dataset* training = dispatcher_.Find(kTraining);
  if (spec_.max_step > 0 && training != nullptr && !training->closed() &&
      dispatcher_.counters().version >= spec_.max_step) {
    LOG_INFO("version {}: training ends, because --max_step is {}", version(), spec_.max_step);
    dispatcher_.Close(kTraining);
  }
  const bool main_done = MainWorkIsDone();
  if (!main_done) ReturnToTraining(now);
  if (spec_.model->evaluates()) UpdateEvaluation(main_done, now);
  const bool done = main_done && !NeedsLastEvaluation() &&
                    (!spec_.model->exports() || IsComplete(dispatcher_.Find(kExport)));
  if (done != state_.done) {
    state_.done = done;
    dirty_ = true;
  }
  std::string next = NextDataset(main_done);
  const bool holds = next == kEvaluation && !state_.open && !done;
  dispatcher_.SetLead({.next_dataset = std::move(next),
                       .finished = done,
                       .holds = holds,
                       .version = state_.open ? state_.open->version : version()},
                      now);
}

void ModelJob::ReturnToTraining(Time now) {
  if (state_.open && state_.open->last) state_.open.reset();
  const Dataset* exported = dispatcher_.Find(kExport);
  const bool export_began =
      exported != nullptr && (exported->Complete() || dispatcher_.LeasesOf(*exported) > 0);
  if (!state_.last_evaluation_done && !export_began) return;
  LOG_WARNING("parameters were lost after training was done: what followed it is repeated");
  state_.last_evaluation_done = false;
  dirty_ = true;
  // REQUIRES only that the dataset exists.
  if (export_began) (void)dispatcher_.Reset(kExport, now);
}

bool ModelJob::IsEvaluationDue() const {
  const int64_t steps = spec_.model->evaluation_steps;
  return steps > 0 && spec_.model->trains() && !dispatcher_.TrainingComplete() &&
         dispatcher_.counters().version / steps > state_.opened_at / steps;
}

void ModelJob::UpdateEvaluation(bool main_done, Time now) {
  if (state_.open) {
    if (state_.open->ps_epoch != dispatcher_.ps_epoch()) {
      LOG_INFO("the evaluation of version {} starts again, because parameters were restored",
               state_.open->version);
      Open({.version = state_.open->version,
            .ps_epoch = dispatcher_.ps_epoch(),
            .last = state_.open->last},
           now);
    } else if (IsComplete(dispatcher_.Find(kMerge))) {
      RecordEvaluation();
    }
  }
  const bool possible =
      dispatcher_.Find(kEvaluation) != nullptr && dispatcher_.ps_epoch() != PsEpoch();
  if (state_.open || !possible) return;
  if (main_done && NeedsLastEvaluation()) {
    Open({.version = version(), .ps_epoch = dispatcher_.ps_epoch(), .last = true}, now);
  } else if (IsEvaluationDue()) {
    state_.opened_at = version();
    Open({.version = version(), .ps_epoch = dispatcher_.ps_epoch()}, now);
  }
}

void ModelJob::Open(Evaluation evaluation, Time now) {
  state_.open = evaluation;
  merged_.reset();
  dirty_ = true;
  // Workers that wait for a merge must not get that of this evaluation before it is evaluated.
  dispatcher_.SetLead({.next_dataset = kEvaluation, .holds = true, .version = evaluation.version},
                      now);
  // Both exist: an evaluation opens only when its dataset is registered.
  (void)dispatcher_.Reset(kEvaluation, now);
  (void)dispatcher_.Reset(kMerge, now);
}

void ModelJob::RecordEvaluation() {
  if (merged_) {
    LOG_INFO("Evaluation metrics[step={}]: {}", merged_->version, merged_->text);
    state_.evaluations.push_back(*std::move(merged_));
    ++evaluation_number_;
    if (state_.evaluations.size() > kMostEvaluations) {
      state_.evaluations.erase(state_.evaluations.begin());
    }
  }
  if (state_.open->last) state_.last_evaluation_done = true;
  merged_.reset();
  state_.open.reset();
  dirty_ = true;
}

std::string ModelJob::NextDataset(bool main_done) const {
  const job::ModelJobType type = spec_.model->type;
  const Dataset* data = dispatcher_.Find(kEvaluation);
  if (state_.open && data != nullptr) {
    if (data->HasMore()) return kEvaluation;
    // Workers that find no shard train on while the last parts are evaluated and merged. When
    // there is nothing else to do, they wait to take over what others lose.
    const bool waits = main_done || type != job::ModelJobType::kTraining;
    const Dataset* merge = dispatcher_.Find(kMerge);
    if (data->Complete() && (waits || (merge != nullptr && merge->HasMore()))) return kMerge;
    if (waits) return kEvaluation;
  }
  if (!main_done) return type == job::ModelJobType::kPrediction ? kPrediction : kTraining;
  if (NeedsLastEvaluation()) return kEvaluation;
  if (spec_.model->exports()) return kExport;
  return type == job::ModelJobType::kTraining     ? kTraining
         : type == job::ModelJobType::kEvaluation ? kEvaluation
                                                  : kPrediction;
}

}  // namespace edl::master
