#include "job/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "job/train_flags.h"

namespace edl::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<JobSpec> Make(std::vector<std::string> flags) {
  Result<FlagValues> values = ParseFlags(TrainFlags(), flags);
  if (!values.ok()) return values.status();
  return MakeJobSpec(*values);
}

std::string ErrorOf(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"--job_name=j", "--job_command=true"});
  return Make(std::move(flags)).status().message();
}

TEST(MakeJobSpec, AcceptsTheCommandOfTheFirstTutorial) {
  const Result<JobSpec> spec = Make({"--image_name=elasticdl:1.0.0",
                                     "--worker_image=elasticdl:iris_estimator",
                                     "--ps_image=elasticdl:iris_estimator",
                                     "--job_command=python -m model_zoo.iris.dnn_estimator",
                                     "--master_resource_request=cpu=0.2,memory=1024Mi",
                                     "--master_resource_limit=cpu=1,memory=2048Mi",
                                     "--num_ps=1",
                                     "--ps_resource_request=cpu=0.2,memory=1024Mi",
                                     "--ps_resource_limit=cpu=1,memory=2048Mi",
                                     "--num_workers=1",
                                     "--worker_resource_request=cpu=0.3,memory=1024Mi",
                                     "--worker_resource_limit=cpu=1,memory=2048Mi",
                                     "--chief_resource_request=cpu=0.3,memory=1024Mi",
                                     "--chief_resource_limit=cpu=1,memory=2048Mi",
                                     "--num_evaluator=1",
                                     "--evaluator_resource_request=cpu=0.3,memory=1024Mi",
                                     "--evaluator_resource_limit=cpu=1,memory=2048Mi",
                                     "--job_name=test-iris-estimator",
                                     "--image_pull_policy=Never",
                                     "--distribution_strategy=ParameterServerStrategy",
                                     "--need_tf_config=true",
                                     "--volume=host_path=/home/me/data,mount_path=/data"});

  ASSERT_OK(spec);
  EXPECT_EQ(spec->job_name, "test-iris-estimator");
  EXPECT_EQ(spec->CountOf(Role::kChief), 1);
  EXPECT_EQ(spec->CountOf(Role::kPs), 1);
  EXPECT_EQ(spec->CountOf(Role::kWorker), 1);
  EXPECT_EQ(spec->CountOf(Role::kEvaluator), 1);
  EXPECT_EQ(spec->resources.at(Role::kChief).memory_limit_bytes, int64_t{2} << 30);
  EXPECT_THAT(spec->volumes,
              ElementsAre(Volume{.host_path = "/home/me/data", .mount_path = "/data"}));
}

TEST(MakeJobSpec, LimitsMemoryOnlyIfAFlagDoes) {
  const Result<JobSpec> spec =
      Make({"--job_name=j", "--job_command=true", "--worker_resource_request=memory=1Gi"});

  ASSERT_OK(spec);
  EXPECT_EQ(spec->resources.at(Role::kWorker).memory_limit_bytes, int64_t{1} << 30);
  EXPECT_EQ(spec->resources.at(Role::kPs).memory_limit_bytes, 0);
  EXPECT_EQ(spec->resources.at(Role::kPs).limit.memory_bytes, int64_t{4} << 30);
}

TEST(MakeJobSpec, RejectsAJobWithoutACommand) {
  EXPECT_THAT(Make({"--job_name=j"}).status().message(),
              HasSubstr("give --model_def=FOLDER.FILE.SYMBOL, a Keras model, or --job_command"));
}

TEST(MakeJobSpec, NamesTheFlagThatItRejects) {
  EXPECT_THAT(ErrorOf({"--num_workers=-1"}),
              HasSubstr("--num_workers=-1: the smallest allowed value is 0"));
  EXPECT_THAT(ErrorOf({"--num_workers=0"}),
              HasSubstr("--num_workers=0: the job would have no worker"));
  EXPECT_THAT(ErrorOf({"--distribution_strategy=Sync"}),
              HasSubstr("--distribution_strategy=Sync is not one of"));
  EXPECT_THAT(
      ErrorOf({"--distribution_strategy=AllreduceStrategy"}),
      HasSubstr("--distribution_strategy=AllreduceStrategy: this version has no all-reduce"));
  EXPECT_THAT(ErrorOf({"--ps_program=elasticdl", "--num_ps_pods=1", "--ps_is_critical=false"}),
              HasSubstr("--ps_is_critical=false with --ps_program=elasticdl"));
  EXPECT_THAT(ErrorOf({"--need_tf_config", "--num_evaluators=2"}), HasSubstr("one evaluator"));
  EXPECT_THAT(ErrorOf({"--envs=x y"}), HasSubstr("--envs: 'x y' at character 1"));
  EXPECT_THAT(ErrorOf({"--volume=x"}), HasSubstr("--volume: 'x' at character 1"));
  EXPECT_THAT(ErrorOf({"--ps_resource_limit=cpu"}), HasSubstr("--ps_resource_limit: 'cpu'"));
  EXPECT_THAT(ErrorOf({"--populate_env_names=["}), HasSubstr("not a regular expression"));
  EXPECT_THAT(ErrorOf({"--critical_worker_index=a"}), HasSubstr("--critical_worker_index: 'a'"));
  EXPECT_THAT(
      ErrorOf({"--worker_resource_request=memory=2Gi", "--worker_resource_limit=memory=1Gi"}),
      HasSubstr("is less than"));
}

TEST(MakeJobSpec, LetsTheWorkersOfAModelAttach) {
  const Result<JobSpec> spec =
      Make({"--job_name=j", "--model_def=a.b.c", "--training_data=d", "--attach_workers=true",
            "--token_file=t", "--master_port=50001"});

  ASSERT_OK(spec);
  EXPECT_TRUE(spec->attach_workers);
  EXPECT_EQ(spec->token_file, "t");
  EXPECT_EQ(spec->master_port, 50001);
}

TEST(MakeJobSpec, RejectsAttachedWorkersWhereTheyCannotWork) {
  EXPECT_THAT(ErrorOf({"--attach_workers=true"}), HasSubstr("--attach_workers=true needs --model"));
  EXPECT_THAT(ErrorOf({"--attach_workers=true", "--backend=kubernetes"}),
              HasSubstr("--attach_workers=true with --backend=kubernetes"));
  EXPECT_THAT(ErrorOf({"--token_file=t"}), HasSubstr("--token_file=t without --attach_workers"));
  EXPECT_THAT(ErrorOf({"--master_port=7", "--backend=kubernetes"}),
              HasSubstr("--master_port=7 with --backend=kubernetes"));
  EXPECT_THAT(ErrorOf({"--master_http_port=7", "--backend=kubernetes"}),
              HasSubstr("--master_http_port=7 with --backend=kubernetes"));
}

TEST(ParseCriticalWorkers, ReadsTheThreeForms) {
  EXPECT_EQ(ParseCriticalWorkers("default")->kind, CriticalWorkers::Kind::kDefault);
  EXPECT_EQ(ParseCriticalWorkers("none")->kind, CriticalWorkers::Kind::kNone);
  EXPECT_THAT(ParseCriticalWorkers("0:3,2:1")->relaunches,
              ElementsAre(std::pair(0, 3), std::pair(2, 1)));
}

TEST(ParseCriticalWorkers, ReportsThePositionOfAnError) {
  EXPECT_THAT(ParseCriticalWorkers("0:1,2").status().message(), HasSubstr("'2' at character 5"));
  EXPECT_THAT(ParseCriticalWorkers("0:1,0:2").status().message(), HasSubstr("given twice"));
  EXPECT_THAT(ParseCriticalWorkers("0:-1"), ::testing::Not(IsOk()));
}

}  // namespace
}  // namespace edl::job
