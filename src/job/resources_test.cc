#include "job/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::job {
namespace {

using ::testing::HasSubstr;

TEST(ParseResources, ReadsTheResourcesOfTheTutorials) {
  const Result<Resources> resources = ParseResources("cpu=0.3,memory=1024Mi");

  ASSERT_OK(resources);
  EXPECT_DOUBLE_EQ(resources->cpu, 0.3);
  EXPECT_EQ(resources->memory_bytes, int64_t{1} << 30);
}

TEST(ParseResources, ReadsEveryKindAndUnit) {
  const Result<Resources> resources = ParseResources(
      " cpu = 250m , memory=2G, disk=1Ti,gpu=1,amd.com/gpu=2,"
      "nvidia.com/P100-PCIE-16GB-P=1 ");

  ASSERT_OK(resources);
  EXPECT_DOUBLE_EQ(resources->cpu, 0.25);
  EXPECT_EQ(resources->memory_bytes, 2'000'000'000);
  EXPECT_EQ(resources->amounts.at("nvidia.com/gpu"), "1");
  EXPECT_EQ(resources->amounts.at("amd.com/gpu"), "2");
  EXPECT_EQ(resources->amounts.size(), 6U);
}

TEST(ParseResources, ReadsAJsonObject) {
  EXPECT_EQ(ParseResources(R"({"cpu": 2, "memory": "1Ki"})")->memory_bytes, 1024);
}

TEST(ParseResources, ReportsThePositionOfAnError) {
  const auto error = [](std::string_view text) { return ParseResources(text).status().message(); };
  EXPECT_EQ(
      error("cpu=1,memory=lots"),
      "'memory' at character 7: 'lots' is not a positive whole number with a unit, such as 4096Mi");
  EXPECT_EQ(
      error("cpu=1,memory=0Mi"),
      "'memory' at character 7: '0Mi' is not a positive whole number with a unit, such as 4096Mi");
  EXPECT_THAT(error("memory=12"), HasSubstr("needs one of the units"));
  EXPECT_EQ(error("memory=99999999Ei"), "'memory' at character 1: '99999999Ei' is too large");
  EXPECT_EQ(error("cpu=1, cpu=2"), "'cpu' at character 8 is given twice");
  EXPECT_EQ(error("cpu=1,oops"), "'oops' at character 7: expected key=value");
  EXPECT_EQ(error("cpu="), "'cpu' at character 1 has no value");
  EXPECT_EQ(error("=1"), "there is no key before '=' at character 1");
  EXPECT_THAT(error("cpu=1x"), HasSubstr("not a number of cores"));
  EXPECT_THAT(error("cpu=nan"), HasSubstr("not a number of cores"));
  EXPECT_THAT(error("gpu=0.5"), HasSubstr("not a whole number"));
  EXPECT_THAT(error("mem=1Gi"), HasSubstr("'mem' at character 1: unknown resource"));
  EXPECT_THAT(error("gpu=1,nvidia.com/gpu=1"), HasSubstr("given twice"));
}

}  // namespace
}  // namespace edl::job
