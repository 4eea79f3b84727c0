#include "job/model_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace edl::job {
namespace {

constexpr std::array<std::string_view, 3> kTypes = {"training", "evaluation", "prediction"};

// The verb that starts a job of this type.
std::string_view VerbOf(ModelJobType type) {
  switch (type) {
    case ModelJobType::kTraining:
      return "train";
    case ModelJobType::kEvaluation:
      return "evaluate";
    case ModelJobType::kPrediction:
      return "predict";
  }
  return "train";
}

Status Missing(std::string_view flag, ModelJobType type, std::string_view what) {
  return InvalidArgument("--{} is missing: `elasticdl {}` with --model_def needs {}", flag,
                         VerbOf(type), what);
}

Status CheckData(const ModelSpec& model, const std::string& checkpoint_dir_for_init) {
  switch (model.type) {
    case ModelJobType::kTraining:
      if (model.training_data.empty()) {
        return Missing("training_data", model.type, "the records to train on");
      }
      if (!model.prediction_data.empty()) {
        return InvalidArgument(
            "--prediction_data={}: a training job predicts nothing; use `elasticdl predict`",
            model.prediction_data);
      }
      break;
    case ModelJobType::kEvaluation:
      if (model.validation_data.empty()) {
        return Missing("validation_data", model.type, "the records to evaluate on");
      }
      break;
    case ModelJobType::kPrediction:
      if (model.prediction_data.empty()) {
        return Missing("prediction_data", model.type, "the records to predict");
      }
      break;
  }
  if (!model.trains() && checkpoint_dir_for_init.empty()) {
    return Missing("checkpoint_dir_for_init", model.type, "the checkpoint of a trained model");
  }
  if (model.trains() && model.evaluation_steps > 0 && model.validation_data.empty()) {
    return InvalidArgument(
        "--evaluation_steps={} needs --validation_data: there is nothing to evaluate on",
        model.evaluation_steps);
  }
  return Ok();
}

}  // namespace

std::string_view NameOf(ModelJobType type) { return kTypes.at(static_cast<size_t>(type)); }

bool IsModelJob(const FlagValues& flags) {
  if (flags.Bool("need_elasticdl_job_service")) return true;
  return !flags.String("model_def").empty() && Trim(flags.String("job_command")).empty();
}

Result<ModelSpec> ReadModelSpec(const FlagValues& flags) {
  if (!Trim(flags.String("job_command")).empty()) {
    return InvalidArgument(
        "--need_elasticdl_job_service=true with --job_command: the workers run either the model or "
        "the command; remove one of the two flags");
  }
  const auto type = std::ranges::find(kTypes, flags.String("job_type"));
  CHECK(type != kTypes.end(), "'{}' is not among the choices of its flag",
        flags.String("job_type"));
  ModelSpec model{.type = static_cast<ModelJobType>(type - kTypes.begin()),
                  .python = flags.String("python"),
                  .model_zoo = flags.String("model_zoo"),
                  .model_def = flags.String("model_def"),
                  .feed = flags.String("feed"),
                  .loss = flags.String("loss"),
                  .optimizer = flags.String("optimizer"),
                  .callbacks = flags.String("callbacks"),
                  .eval_metrics_fn = flags.String("eval_metrics_fn"),
                  .custom_data_reader = flags.String("custom_data_reader"),
                  .prediction_outputs_processor = flags.String("prediction_outputs_processor"),
                  .data_reader_params = flags.String("data_reader_params"),
                  .training_data = flags.String("training_data"),
                  .validation_data = flags.String("validation_data"),
                  .prediction_data = flags.String("prediction_data"),
                  .evaluation_steps = flags.Int("evaluation_steps"),
                  .get_model_steps = flags.Int("get_model_steps"),
                  .log_loss_steps = flags.Int("log_loss_steps"),
                  .output = flags.String("output"),
                  .tensorboard_log_dir = flags.String("tensorboard_log_dir"),
                  .use_async = flags.Bool("use_async"),
                  .seed = flags.Int("seed")};
  if (model.model_def.empty()) {
    return InvalidArgument(
        "--need_elasticdl_job_service=true needs --model_def=FOLDER.FILE.SYMBOL: the model to "
        "train");
  }
  if (model.python.empty()) {
    return InvalidArgument("--python is empty: give the interpreter of the workers, or omit it");
  }
  // A synchronous gradient belongs to the newest parameters, as in the original.
  if (!model.use_async) model.get_model_steps = 1;
  EDL_RETURN_IF_ERROR(ModelFile(model.model_zoo, model.model_def).status());
  EDL_RETURN_IF_ERROR(CheckData(model, flags.String("checkpoint_dir_for_init")));
  return model;
}

Result<std::string> ModelFile(const std::string& model_zoo, const std::string& model_def) {
  const size_t dot = model_def.rfind('.');
  const bool has_parts = dot != std::string::npos && dot > 0 && dot + 1 < model_def.size() &&
                         model_def.front() != '.' && model_def.find("..") == std::string::npos &&
                         model_def.find('/') == std::string::npos;
  if (!has_parts) {
    return InvalidArgument(
        "--model_def={}: expected FOLDER.FILE.SYMBOL, for example "
        "mnist.mnist_functional_api.custom_model for the function custom_model in "
        "mnist/mnist_functional_api.py of the model zoo",
        model_def);
  }
  std::string file = model_def.substr(0, dot);
  std::ranges::replace(file, '.', '/');
  return (model_zoo.empty() ? "" : model_zoo + (model_zoo.ends_with('/') ? "" : "/")) + file +
         ".py";
}

}  // namespace edl::job
