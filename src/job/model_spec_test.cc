#include "job/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "job/job_spec.h"
#include "job/train_flags.h"

namespace edl::job {
namespace {

using ::testing::HasSubstr;

Result<JobSpec> Make(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "--job_name=mnist");
  Result<FlagValues> values = ParseFlags(TrainFlags(), flags);
  if (!values.ok()) return values.status();
  return MakeJobSpec(*values);
}

std::string ErrorOf(std::vector<std::string> flags) {
  return Make(std::move(flags)).status().message();
}

TEST(ModelJob, IsInferredFromAModelWithoutACommand) {
  const Result<JobSpec> spec = Make({"--model_def=m.custom_model", "--training_data=train"});

  ASSERT_OK(spec);
  ASSERT_TRUE(spec->model.has_value());
  EXPECT_TRUE(spec->own_ps);
  EXPECT_EQ(spec->num_ps, 1);
  EXPECT_FALSE(spec->compat_api);
  EXPECT_EQ(spec->model->type, ModelJobType::kTraining);
  EXPECT_EQ(spec->model->python, "python3");
  EXPECT_FALSE(spec->model->evaluates());
  EXPECT_FALSE(spec->model->exports());
}

TEST(ModelJob, IsNotAJobWithACommand) {
  const Result<JobSpec> spec = Make({"--model_def=m.custom_model", "--job_command=true"});

  ASSERT_OK(spec);
  EXPECT_FALSE(spec->model.has_value());
  EXPECT_FALSE(spec->own_ps);
}

TEST(ModelJob, AcceptsTheCommandOfTheLocalTutorial) {
  const Result<JobSpec> spec =
      Make({"--image_name=elasticdl:mnist", "--model_zoo=model_zoo",
            "--model_def=mnist.mnist_functional_api.custom_model",
            "--training_data=/data/mnist/train", "--validation_data=/data/mnist/test",
            "--num_epochs=2", "--num_ps_pods=1", "--num_workers=1", "--evaluation_steps=50",
            "--dataset_fn=my_feed", "--distribution_strategy=ParameterServerStrategy",
            "--need_elasticdl_job_service=true", "--volume=host_path=/data,mount_path=/data"});

  ASSERT_OK(spec);
  EXPECT_EQ(spec->model->feed, "my_feed");
  EXPECT_EQ(spec->model->evaluation_steps, 50);
  EXPECT_TRUE(spec->model->evaluates());
}

TEST(ModelJob, NamesTheFlagThatIsMissing) {
  EXPECT_THAT(ErrorOf({"--model_def=m.f"}), HasSubstr("--training_data is missing"));
  EXPECT_THAT(ErrorOf({"--model_def=m.f", "--job_type=evaluation"}),
              HasSubstr("--validation_data is missing"));
  EXPECT_THAT(ErrorOf({"--model_def=m.f", "--job_type=evaluation", "--validation_data=test"}),
              HasSubstr("--checkpoint_dir_for_init is missing: `elasticdl evaluate`"));
  EXPECT_THAT(ErrorOf({"--model_def=m.f", "--job_type=prediction"}),
              HasSubstr("--prediction_data is missing"));
  EXPECT_THAT(ErrorOf({"--model_def=m.f", "--job_type=prediction", "--prediction_data=new"}),
              HasSubstr("--checkpoint_dir_for_init is missing: `elasticdl predict`"));
  EXPECT_THAT(ErrorOf({"--need_elasticdl_job_service=true"}), HasSubstr("needs --model_def"));
  EXPECT_THAT(ErrorOf({"--job_command=true", "--job_type=evaluation"}),
              HasSubstr("give --model_def"));
}

TEST(ModelJob, NamesTheFlagsThatDoNotFit) {
  const auto error_with = [](const std::string& flag) {
    return ErrorOf({"--model_def=m.f", "--training_data=train", flag});
  };
  EXPECT_THAT(error_with("--num_ps_pods=0"), HasSubstr("--num_ps_pods=0 with --model_def"));
  EXPECT_THAT(error_with("--evaluation_steps=10"),
              HasSubstr("--evaluation_steps=10 needs --validation_data"));
  EXPECT_THAT(error_with("--prediction_data=new"), HasSubstr("elasticdl predict"));
  EXPECT_THAT(error_with("--num_evaluators=1"), HasSubstr("--num_evaluators=1"));
  EXPECT_THAT(error_with("--need_task_manager=false"), HasSubstr("--need_task_manager=false"));
  EXPECT_THAT(error_with("--distribution_strategy=AllreduceStrategy"), HasSubstr("no all-reduce"));
  EXPECT_OK(Make({"--model_def=m.f", "--training_data=t", "--distribution_strategy=Local"}));
  EXPECT_THAT(ErrorOf({"--model_def=f", "--training_data=t"}),
              HasSubstr("--model_def=f: expected FOLDER.FILE.SYMBOL"));
  EXPECT_THAT(ErrorOf({"--model_def=m.f", "--training_data=t", "--job_command=true",
                       "--need_elasticdl_job_service=true"}),
              HasSubstr("remove one of the two flags"));
}

TEST(ModelJob, PullsEveryStepUnlessGradientsAreAsynchronous) {
  const std::vector<std::string> flags = {"--model_def=m.f", "--training_data=t",
                                          "--get_model_steps=4"};
  EXPECT_EQ(Make(flags)->model->get_model_steps, 1);
  EXPECT_EQ(Make({flags[0], flags[1], flags[2], "--use_async=true"})->model->get_model_steps, 4);
}

TEST(ModelFile, IsAPathBelowTheZoo) {
  EXPECT_EQ(*ModelFile("zoo", "deepfm.train.custom_model"), "zoo/deepfm/train.py");
  EXPECT_EQ(*ModelFile("/zoo/", "m.f"), "/zoo/m.py");
  EXPECT_EQ(*ModelFile("", "m.f"), "m.py");
  for (const std::string bad : {"", "f", ".f", "m.", "a..f", "../a.f", "a/b.f"}) {
    EXPECT_EQ(ModelFile("zoo", bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace edl::job
