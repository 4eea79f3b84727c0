#include "backend/cluster_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "job/train_flags.h"

namespace edl::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ClusterOptions> Options(const std::map<std::string, std::string>& given) {
  FlagValues flags(job::TrainFlags());
  EXPECT_EQ(flags.Set("image_name", "elasticdl:1", FlagSource::kCommandLine), Ok());
  for (const auto& [flag, value] : given) {
    EXPECT_EQ(flags.Set(flag, value, FlagSource::kCommandLine), Ok());
  }
  return MakeClusterOptions(flags);
}

std::vector<int> HighOnes(const std::string& fraction, int count) {
  const Result<ClusterOptions> options = Options({{"worker_pod_priority", fraction}});
  EXPECT_OK(options);
  std::vector<int> high;
  for (int index = 0; index < count; ++index) {
    const std::string name = options->PriorityClassOf(job::Role::kWorker, index, count);
    if (name == "high")
      high.push_back(index);
    else
      EXPECT_EQ(name, "low");
  }
  return high;
}

TEST(ClusterOptions, TakesTheHighWorkersFromBothEnds) {
  EXPECT_THAT(HighOnes("0.5", 10), ElementsAre(0, 1, 2, 8, 9));
  EXPECT_THAT(HighOnes("0.3", 5), ElementsAre(0, 4));
  EXPECT_THAT(HighOnes("0.5", 4), ElementsAre(0, 3));
  EXPECT_THAT(HighOnes("0", 3), ElementsAre());
  EXPECT_THAT(HighOnes("1", 3), ElementsAre(0, 1, 2));
}

TEST(ClusterOptions, MakesWorkersBeyondTheFirstCountLow) {
  const auto options = Options({{"worker_pod_priority", "0.5"}});
  EXPECT_EQ(options->PriorityClassOf(job::Role::kWorker, 4, 4), "low");
}

TEST(ClusterOptions, GivesEachRoleItsClass) {
  const auto options = Options({{"worker_pod_priority", "batch"}, {"ps_pod_priority", "high"}});
  EXPECT_EQ(options->PriorityClassOf(job::Role::kWorker, 0, 4), "batch");
  EXPECT_EQ(options->PriorityClassOf(job::Role::kPs, 1, 2), "high");
  EXPECT_EQ(options->PriorityClassOf(job::Role::kChief, 0, 1), "");
}

TEST(ClusterOptions, GivesMasterAndPsAtLeastTheClassOfTheWorkers) {
  const auto low = Options({{"worker_pod_priority", "low"}});
  EXPECT_EQ(low->PriorityClassOf(job::Role::kMaster, 0, 1), "low");
  EXPECT_EQ(low->PriorityClassOf(job::Role::kPs, 0, 1), "low");
  EXPECT_EQ(low->PriorityClassOf(job::Role::kEvaluator, 0, 1), "");
  const auto both = Options({{"worker_pod_priority", "low"}, {"chief_pod_priority", "high"}});
  EXPECT_EQ(both->PriorityClassOf(job::Role::kMaster, 0, 1), "high");
  const auto part = Options({{"worker_pod_priority", "0.5"}});
  EXPECT_EQ(part->PriorityClassOf(job::Role::kMaster, 0, 1), "high");
  EXPECT_EQ(part->PriorityClassOf(job::Role::kPs, 0, 1), "high");
  const auto given = Options({{"worker_pod_priority", "low"}, {"master_pod_priority", "mine"}});
  EXPECT_EQ(given->PriorityClassOf(job::Role::kMaster, 0, 1), "mine");
  EXPECT_EQ(Options({})->PriorityClassOf(job::Role::kMaster, 0, 1), "");
}

TEST(ClusterOptions, FallsBackToTheMastersImage) {
  const auto options = Options({{"worker_image", "iris:2"}});
  EXPECT_EQ(options->images.at(job::Role::kMaster), "elasticdl:1");
  EXPECT_EQ(options->images.at(job::Role::kPs), "elasticdl:1");
  for (const job::Role role : {job::Role::kWorker, job::Role::kChief, job::Role::kEvaluator}) {
    EXPECT_EQ(options->images.at(role), "iris:2");
  }
}

TEST(ClusterOptions, ReadsListsOfNames) {
  const auto options =
      Options({{"image_pull_secrets", "one, two"}, {"service_account", "trainer"}});
  EXPECT_THAT(options->pull_secrets, ElementsAre("one", "two"));
  EXPECT_EQ(options->service_account, "trainer");
}

TEST(ClusterOptions, ReadsSecretVariables) {
  EXPECT_THAT(*ParseSecretVariables("KEY=aws/key, ID=aws/id"),
              ElementsAre(SecretVariable{"KEY", "aws", "key"}, SecretVariable{"ID", "aws", "id"}));
  EXPECT_TRUE(ParseSecretVariables("")->empty());
}

TEST(ClusterOptions, NamesTheFlagThatIsWrong) {
  const auto error = [](const std::map<std::string, std::string>& given) {
    return Options(given).status().message();
  };
  EXPECT_THAT(error({{"image_name", ""}}), HasSubstr("--image_name is missing"));
  EXPECT_THAT(
      error({{"worker_pod_priority", "1.5"}}),
      HasSubstr("--worker_pod_priority=1.5: the fraction of workers must be between 0 and 1"));
  EXPECT_THAT(error({{"worker_pod_priority", "nan"}}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(error({{"ps_pod_priority", "High"}}),
              HasSubstr("--ps_pod_priority=High is not a valid object name"));
  EXPECT_THAT(error({{"image_pull_secrets", "a,B"}}), HasSubstr("--image_pull_secrets=B"));
  EXPECT_THAT(error({{"env_secret", "KEY=aws"}}),
              HasSubstr("--env_secret: 'aws' at character 5: expected SECRET/KEY"));
  EXPECT_THAT(error({{"cluster_spec", "spec.py"}}), HasSubstr("--cluster_spec=spec.py"));
  EXPECT_THAT(error({{"cluster_spec_json", "{\"x\": 1}"}}), HasSubstr("--cluster_spec_json: x:"));
}

}  // namespace
}  // namespace edl::backend
