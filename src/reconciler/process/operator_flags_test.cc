#include "reconciler/process/operator_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::reconciler {
namespace {

using ::testing::HasSubstr;

TEST(OperatorFlags, HaveUpstreamsNamesAndAddresses) {
  const auto config =
      ParseOperatorFlags({"--leader-elect", "--metrics-bind-address=:9000",
                          "--health-probe-bind-address=[::1]:0", "--gang-scheduler-name=volcano"});
  ASSERT_OK(config);
  EXPECT_TRUE(config->leader_elect);
  EXPECT_EQ(config->metrics_host, "");
  EXPECT_EQ(config->metrics_port, 9000);
  EXPECT_EQ(config->probe_host, "::1");
  EXPECT_EQ(config->probe_port, 0);
  EXPECT_EQ(config->gang_scheduler, "volcano");
  EXPECT_EQ(config->lease_name, "1ca428e5.training-operator.kubeflow.org");
}

TEST(OperatorFlags, Q16_TheDefaultsAllowManyCallsAndParallelJobs) {
  const auto config = ParseOperatorFlags({});
  ASSERT_OK(config);
  EXPECT_EQ(config->calls_per_second, 200);
  EXPECT_EQ(config->burst, 400);
  EXPECT_EQ(config->threads, 4);
}

TEST(OperatorFlags, ZeroMeansNoServer) {
  const auto config =
      ParseOperatorFlags({"--metrics-bind-address=0", "--health-probe-bind-address=0"});
  ASSERT_OK(config);
  EXPECT_EQ(config->metrics_port, -1);
  EXPECT_EQ(config->probe_port, -1);
}

TEST(OperatorFlags, AWrongAddressIsAnErrorThatNamesFlagAndForm) {
  for (const char* wrong : {"", "8080", "host:", "host:x", ":65536", ":-1"}) {
    const auto config = ParseOperatorFlags({std::string("--metrics-bind-address=") + wrong});
    ASSERT_FALSE(config.ok()) << wrong;
    EXPECT_THAT(config.status().message(), HasSubstr("--metrics-bind-address"));
    EXPECT_THAT(config.status().message(), HasSubstr("HOST:PORT"));
  }
}

TEST(OperatorFlags, NamesMustNotBeEmpty) {
  for (const std::string flag : {"--shard-service-image", "--leader-election-id"}) {
    const auto config = ParseOperatorFlags({flag + "="});
    ASSERT_FALSE(config.ok()) << flag;
    EXPECT_THAT(config.status().message(), HasSubstr(flag + "=: must not be empty"));
  }
}

TEST(OperatorFlags, RatesHaveALimit) {
  for (const std::string flag : {"--kube-api-qps=", "--kube-api-burst="}) {
    EXPECT_OK(ParseOperatorFlags({flag + "1000000"}));
    // As an int, this is 0.
    EXPECT_THAT(ParseOperatorFlags({flag + "4294967296"}), StatusIs(Code::kInvalidArgument));
  }
}

TEST(OperatorFlags, UnknownFlagsAndArgumentsAreErrors) {
  EXPECT_THAT(ParseOperatorFlags({"--leader-elct"}).status().message(), HasSubstr("leader-elect"));
  EXPECT_THAT(ParseOperatorFlags({"tfjob"}).status().message(), HasSubstr("'tfjob'"));
}

}  // namespace
}  // namespace edl::reconciler
