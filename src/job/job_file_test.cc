#include "job/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
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

TEST(JobFile, ReadsYamlWithMapsAndLists) {
  FlagValues flags(TrainFlags());

  ASSERT_OK(SetFromJobFile(flags, kYaml));

  EXPECT_EQ(flags.source("num_ps_pods"), FlagSource::kFile);
  const Result<JobSpec> spec = MakeJobSpec(flags);
  ASSERT_OK(spec);
  EXPECT_EQ(spec->job_command, "python train.py\n");
  EXPECT_TRUE(spec->need_tf_config);
  EXPECT_EQ(spec->envs, (std::map<std::string, std::string>{{"A", "1,B=2"}, {"N", "3"}}));
  EXPECT_EQ(spec->volumes.at(0).host_path, "/a,b");
  EXPECT_EQ(spec->resources.at(Role::kWorker).memory_limit_bytes, int64_t{1} << 30);
}

TEST(JobFile, RoundTripsAllFlags) {
  FlagValues flags(TrainFlags());
  ASSERT_OK(SetFromJobFile(flags, kYaml));
  ASSERT_OK(flags.Set("job_command", "echo \"a\\b\" 'c'\t\n# d: {e}", FlagSource::kFile));

  FlagValues read(MasterFlags());
  ASSERT_OK(SetFromJobFile(read, ToJobFile(flags)));

  for (const FlagSpec& spec : TrainFlags().specs()) {
    EXPECT_EQ(read.Text(spec.name), flags.Text(spec.name)) << spec.name;
  }
}

TEST(JobFile, ReportsErrorsWithTheirLine) {
  EXPECT_EQ(ErrorOf("job_name: a\nnum_worker5: 1\n"),
            "there is no flag --num_worker5; did you mean --num_workers? (line 2)");
  EXPECT_THAT(ErrorOf("num_workers: many"), HasSubstr("--num_workers=many is not a whole number"));
  EXPECT_THAT(ErrorOf("num_ps: 1\nnum_ps_pods: 2"),
              HasSubstr("sets --num_ps_pods, which is already set"));
  EXPECT_THAT(ErrorOf("num_workers: [1]"), HasSubstr("needs one plain value"));
  EXPECT_THAT(ErrorOf("envs: {A: [1]}"), HasSubstr("plain values"));
  EXPECT_THAT(ErrorOf("envs: {A: 1, A: 2}"), HasSubstr("'A' (line 1) is given twice"));
  EXPECT_THAT(ErrorOf("volume: [a]"), HasSubstr("must be a list of maps"));
  EXPECT_THAT(ErrorOf("- a"), HasSubstr("expected a map"));
  EXPECT_THAT(ErrorOf("a: ["), HasSubstr("not YAML"));
  EXPECT_THAT(ErrorOf("file: x"), HasSubstr("is not allowed in a job file"));
  EXPECT_THAT(ErrorOf("{\"job_name\": {\"a\": 1}}"), HasSubstr("'job_name'"));
  EXPECT_THAT(ErrorOf("{\"job_name\": \"a\", \"job_name\": \"b\"}"), HasSubstr("is given twice"));
  EXPECT_EQ(ErrorOf(""), "");
}

}  // namespace
}  // namespace edl::job
