#include "image/pip_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::image {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(PipConfig, IsReadAsPipDoes) {
  EXPECT_THAT(ReadPipConfig("index-url = ignored\n"
                            "[global]\n"
                            "# a remark\n"
                            "Index_URL= https://a.example/simple \r\n"
                            "extra-index-url =\n"
                            "    https://b.example/simple\n"
                            "\t; another\n"
                            "\thttps://c.example/simple\n"
                            "nonsense\n"
                            "timeout: 60\n"
                            "[freeze]\n"
                            "timeout = 10\n"
                            "[install]\n"
                            "retries = 9\n"
                            "timeout = 70"),
              UnorderedElementsAre(
                  Pair("index-url", "https://a.example/simple"),
                  Pair("extra-index-url", "https://b.example/simple https://c.example/simple"),
                  Pair("timeout", "70"), Pair("retries", "9")));
}

TEST(PipConfig, IsAlsoInTheEnvironment) {
  const std::map<std::string, std::string> variables = {
      {"PIP_INDEX_URL", "https://a.example/simple"},
      {"PIP_NO_INDEX", ""},
      {"PIP_TRUSTED_HOST", "a.example"},
      {"PIP_FIND_LINKS", "/here"}};
  const auto variable = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  EXPECT_THAT(PipSettingsOf(variable),
              UnorderedElementsAre(Pair("index-url", "https://a.example/simple"),
                                   Pair("trusted-host", "a.example")));
}

TEST(PipConfig, LeavesOutSettingsWithoutAMeaningInABuild) {
  EXPECT_EQ(WritePipConfig({{"index-url", "https://a.example/simple"},
                            {"cert", "/home/me/ca.pem"},
                            {"find-links", "/home/me/wheels"},
                            {"timeout", "60"}},
                           "/etc/ssl/certs/ca-certificates.crt"),
            "[global]\n"
            "index-url = https://a.example/simple\n"
            "timeout = 60\n"
            "cert = /etc/ssl/certs/ca-certificates.crt\n");
  EXPECT_THAT(PipVariables({{"extra-index-url", "https://a.example"}, {"cert", "/ca.pem"}}),
              UnorderedElementsAre(Pair("PIP_EXTRA_INDEX_URL", "https://a.example")));
  EXPECT_EQ(WritePipConfig({{"proxy", "a\nfind-links = b"}}, ""), "[global]\n");
}

}  // namespace
}  // namespace edl::image
