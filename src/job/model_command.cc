#include "job/model_command.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"

namespace edl::job {

std::vector<std::string> ModelWorkerCommand(const JobSpec& job) {
  CHECK(job.model.has_value(), "job {} has no model", job.job_name);
  const ModelSpec& model = *job.model;
  std::vector<std::string> command = {model.python, "-m", "elasticdl.worker"};
  const auto add = [&](std::string_view flag, const auto& value) {
    command.push_back(fmt::format("--{}={}", flag, value));
  };
  const auto add_text = [&](std::string_view flag, const std::string& value) {
    if (!value.empty()) add(flag, value);
  };
  add("job_type", NameOf(model.type));
  add("job_name", job.job_name);
  add_text("model_zoo", model.model_zoo);
  add_text("model_def", model.model_def);
  add_text("feed", model.feed);
  add_text("loss", model.loss);
  add_text("optimizer", model.optimizer);
  add_text("callbacks", model.callbacks);
  add_text("eval_metrics_fn", model.eval_metrics_fn);
  add_text("custom_data_reader", model.custom_data_reader);
  add_text("prediction_outputs_processor", model.prediction_outputs_processor);
  add_text("data_reader_params", model.data_reader_params);
  add_text("training_data", model.training_data);
  add_text("validation_data", model.validation_data);
  add_text("prediction_data", model.prediction_data);
  add_text("output", model.output);
  add_text("tensorboard_log_dir", model.tensorboard_log_dir);
  add("minibatch_size", job.minibatch_size);
  add("num_minibatches_per_task", job.num_minibatches_per_task);
  add("use_async", model.use_async);
  add("grads_to_wait", std::max<int64_t>(1, job.grads_to_wait));
  add("evaluation_steps", model.evaluation_steps);
  add("get_model_steps", model.get_model_steps);
  add("log_loss_steps", model.log_loss_steps);
  add("seed", model.seed);
  add("log_level", LevelName(job.log_level));
  return command;
}

std::vector<std::string> WorkerCommand(const JobSpec& job) {
  return job.model ? ModelWorkerCommand(job) : ShellCommand(job.job_command);
}

}  // namespace edl::job
