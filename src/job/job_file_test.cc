#include "job/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job_spec.h"
#include "job/train_flags.h"

namespace edl::job {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  FlagValues flags(TrainFlags());
  return SetFromJobFile(flags, text).message();
}

constexpr std::string_view kYaml = R"(
# A job.
job_name: iris
job_command: |
  python train.py
num_ps: 1
need_tf_config: yes
envs:
  A: "1,B=2"
  N: 3
volume:
  - host_path: /a,b
    mount_path: /data
worker_resource_request: {cpu: 0.5, memory: 1Gi}
)";

TEST(JobFile, TakesFlagsFromYamlWithMapsAndLists) {
  FlagValues flags(TrainFlags());

  ASSERT_TRUE(SetFromJobFile(flags, kYaml).ok());

  EXPECT_EQ(flags.source("num_ps_pods"), FlagSource::kFile);
  const Result<JobSpec> spec = MakeJobSpec(flags);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->job_command, "python train.py\n");
  EXPECT_TRUE(spec->need_tf_config);
  EXPECT_EQ(spec->envs, (std::map<std::string, std::string>{{"A", "1,B=2"}, {"N", "3"}}));
  EXPECT_EQ(spec->volumes.at(0).host_path, "/a,b");
  EXPECT_EQ(spec->resources.at(Role::kWorker).memory_limit_bytes, int64_t{1} << 30);
}

TEST(JobFile, GivesBackWhatWasWritten) {
  FlagValues flags(TrainFlags());
  ASSERT_TRUE(SetFromJobFile(flags, kYaml).ok());
  ASSERT_TRUE(flags.Set("job_command", "echo \"a\\b\" 'c'\t\n# d: {e}", FlagSource::kFile).ok());

  FlagValues read(MasterFlags());
  ASSERT_TRUE(SetFromJobFile(read, ToJobFile(flags)).ok());

  for (const FlagSpec& spec : TrainFlags().specs()) {
    EXPECT_EQ(read.Text(spec.name), flags.Text(spec.name)) << spec.name;
  }
}

TEST(JobFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(ErrorOf("job_name: a\nnum_worker5: 1\n"),
            "there is no flag --num_worker5; did you mean --num_workers? (line 2)");
  EXPECT_THAT(ErrorOf("num_workers: many"), HasSubstr("--num_workers=many is not a whole number"));
  EXPECT_THAT(ErrorOf("num_ps: 1\nnum_ps_pods: 2"), HasSubstr("gives --num_ps_pods a second time"));
  EXPECT_THAT(ErrorOf("num_workers: [1]"), HasSubstr("takes one plain value"));
  EXPECT_THAT(ErrorOf("envs: {A: [1]}"), HasSubstr("plain values"));
  EXPECT_THAT(ErrorOf("envs: {A: 1, A: 2}"), HasSubstr("'A' (line 1) is there twice"));
  EXPECT_THAT(ErrorOf("volume: [a]"), HasSubstr("not one of maps"));
  EXPECT_THAT(ErrorOf("- a"), HasSubstr("not a map"));
  EXPECT_THAT(ErrorOf("a: ["), HasSubstr("not YAML"));
  EXPECT_THAT(ErrorOf("file: x"), HasSubstr("cannot be in a job file"));
  EXPECT_THAT(ErrorOf("{\"job_name\": {\"a\": 1}}"), HasSubstr("'job_name'"));
  EXPECT_THAT(ErrorOf("{\"job_name\": \"a\", \"job_name\": \"b\"}"), HasSubstr("there twice"));
  EXPECT_EQ(ErrorOf(""), "");
}

}  // namespace
}  // namespace edl::job
