#include "job/model_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "job/train_flags.h"

namespace edl::job {
namespace {

using ::testing::ElementsAre;

TEST(ModelWorkerCommand, HasTheModelAndTheNumbers) {
  const Result<FlagValues> flags = ParseFlags(
      TrainFlags(), std::vector<std::string>{
                        "--job_name=deepfm", "--model_zoo=my zoo", "--model_def=a.b.model",
                        "--training_data=data;$(rm)", "--data_reader_params=columns=['a']",
                        "--python=/opt/venv/bin/python", "--minibatch_size=32", "--use_async=true",
                        "--seed=7", "--callbacks=", "--log_level=debug"});
  ASSERT_OK(flags);
  const Result<JobSpec> job = MakeJobSpec(*flags);
  ASSERT_OK(job);

  EXPECT_THAT(
      ModelWorkerCommand(*job),
      ElementsAre("/opt/venv/bin/python", "-m", "elasticdl.worker", "--job_type=training",
                  "--job_name=deepfm", "--model_zoo=my zoo", "--model_def=a.b.model", "--feed=feed",
                  "--loss=loss", "--optimizer=optimizer", "--eval_metrics_fn=eval_metrics_fn",
                  "--custom_data_reader=custom_data_reader",
                  "--prediction_outputs_processor=PredictionOutputsProcessor",
                  "--data_reader_params=columns=['a']", "--training_data=data;$(rm)",
                  "--minibatch_size=32", "--num_minibatches_per_task=8", "--use_async=true",
                  "--grads_to_wait=1", "--evaluation_steps=0", "--get_model_steps=1",
                  "--log_loss_steps=100", "--seed=7", "--log_level=DEBUG"));
  EXPECT_EQ(WorkerCommand(*job), ModelWorkerCommand(*job));
}

TEST(WorkerCommand, IsTheCommandOfTheJobWithoutAModel) {
  JobSpec job;
  job.job_command = "python train.py";
  EXPECT_EQ(WorkerCommand(job), ShellCommand("python train.py"));
}

}  // namespace
}  // namespace edl::job
