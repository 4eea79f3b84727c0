#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/flags.h"
#include "base/status.h"

namespace edl::job {

// What the workers of a job with --model_def do.
enum class ModelJobType { kTraining, kEvaluation, kPrediction };
// "training", "evaluation", "prediction": the values of --job_type.
std::string_view NameOf(ModelJobType type);

// The model of a job and its data, as its user specifies them. Symbols and paths are given to the
// workers unchanged. docs/flags.md explains each flag.
struct ModelSpec {
  ModelJobType type = ModelJobType::kTraining;
  std::string python;  // the interpreter of the workers
  std::string model_zoo;
  std::string model_def;
  std::string feed;
  std::string loss;
  std::string optimizer;
  std::string callbacks;
  std::string eval_metrics_fn;
  std::string custom_data_reader;
  std::string prediction_outputs_processor;
  std::string data_reader_params;
  std::string training_data;
  std::string validation_data;
  std::string prediction_data;
  int64_t evaluation_steps = 0;  // 0: only one evaluation, after training
  int64_t get_model_steps = 1;
  int64_t log_loss_steps = 0;
  std::string output;  // where the SavedModel is written; empty: nowhere
  std::string tensorboard_log_dir;
  bool use_async = false;
  int64_t seed = 0;  // 0: not chosen yet; `train` chooses it when it starts the job
  // The version of --checkpoint_dir_for_init. Set by the master when the job starts.
  int64_t init_version = 0;

  bool trains() const { return type == ModelJobType::kTraining; }
  // The job evaluates, at least once.
  bool evaluates() const { return !validation_data.empty() && type != ModelJobType::kPrediction; }
  bool exports() const { return trains() && !output.empty(); }
};

// Whether the flags describe a job of a model: --model_def without --job_command, or
// --need_elasticdl_job_service=true.
bool IsModelJob(const FlagValues& flags);

// Reads the model of a job. InvalidArgument: the message names the flag and what to do. REQUIRES:
// IsModelJob(flags).
Result<ModelSpec> ReadModelSpec(const FlagValues& flags);

// The file of a model: "deepfm.train.custom_model" is <zoo>/deepfm/train.py, and the symbol in it
// is custom_model. InvalidArgument: the text has not this form.
Result<std::string> ModelFile(const std::string& model_zoo, const std::string& model_def);

}  // namespace edl::job
