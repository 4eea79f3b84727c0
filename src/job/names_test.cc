#include "job/names.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::job {
namespace {

using ::testing::HasSubstr;

constexpr size_t kDnsLabel = 63;

TEST(Names, AreThoseOfTheTutorials) {
  EXPECT_EQ(MasterName("test-iris"), "elasticdl-test-iris-master");
  EXPECT_EQ(ReplicaName("test-iris", Role::kChief, 0), "test-iris-edljob-chief-0");
}

TEST(Names, OfAModelHaveTheOriginalsPrefix) {
  EXPECT_EQ(ReplicaName("mnist", Role::kWorker, 3, Naming::kModel), "elasticdl-mnist-worker-3");
  EXPECT_LE(
      ReplicaName(std::string(kLongestJobName, 'a'), Role::kWorker, 999'999, Naming::kModel).size(),
      kDnsLabel);
}

TEST(ReplicaLabel, IsRoleAndIdInBothNamings) {
  EXPECT_EQ(ReplicaLabel("a", "a-edljob-worker-0"), "worker-0");
  EXPECT_EQ(ReplicaLabel("a", "elasticdl-a-ps-12"), "ps-12");
}

TEST(ReplicaLabel, IsNotThatOfAnotherJob) {
  for (const char* name : {"elasticdl-a-master", "elasticdl-a-b-worker-0", "b-edljob-worker-0",
                           "elasticdl-a-worker-0-ps-1", "elasticdl-a-worker-", "worker-0"}) {
    EXPECT_EQ(ReplicaLabel("a", name), std::nullopt) << name;
  }
}

TEST(CheckJobName, LimitsNamesSoThatEveryDerivedNameFits) {
  const std::string longest(kLongestJobName, 'a');
  ASSERT_OK(CheckJobName(longest));

  size_t length = MasterName(longest).size();
  for (const Role role : kReplicaRoles) {
    length = std::max(length, ReplicaName(longest, role, 999'999).size());
  }

  EXPECT_EQ(length, kDnsLabel);
}

TEST(CheckJobName, ReportsTheError) {
  const auto error = [](std::string_view name) { return CheckJobName(name).message(); };
  EXPECT_THAT(error(""), HasSubstr("give --job_name"));
  EXPECT_THAT(error("Iris"), HasSubstr("has 'I' at character 1"));
  EXPECT_THAT(error("a_b"), HasSubstr("has '_' at character 2"));
  EXPECT_THAT(error("../x"), HasSubstr("has '.' at character 1"));
  EXPECT_THAT(error("größe"), HasSubstr("has 'ö' at character 3"));
  EXPECT_THAT(error("My_Job.2"), HasSubstr("for example --job_name=my-job-2"));
  EXPECT_THAT(error("1a"), HasSubstr("must begin with a letter"));
  EXPECT_THAT(error("a-"), HasSubstr("must not end with '-'"));
  EXPECT_THAT(error(std::string(kLongestJobName + 1, 'a')), HasSubstr("at most 39 are allowed"));
}

}  // namespace
}  // namespace edl::job
