#include "image/image_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::image {
namespace {

using ::testing::HasSubstr;

TEST(ImageName, IsCompletedToTheFullName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"elasticdl", "docker.io/library/elasticdl:latest"},
      {"elasticdl:mnist", "docker.io/library/elasticdl:mnist"},
      {"elasticdl/elasticdl:1.0.0", "docker.io/elasticdl/elasticdl:1.0.0"},
      {"gcr.io/my-project/elasticdl:mnist", "gcr.io/my-project/elasticdl:mnist"},
      {"localhost/a_b", "localhost/a_b:latest"},
      {"host:5000/a/b/c:T_1.x-y", "host:5000/a/b/c:T_1.x-y"},
      {"a@sha256:12", "docker.io/library/a@sha256:12"},
      {"a:b@sha256:12", "docker.io/library/a:b@sha256:12"},
  };
  for (const auto& [typed, full] : cases) {
    const auto name = ParseImageName(typed);
    ASSERT_OK(name);
    EXPECT_EQ(name->Full(), full);
  }
}

TEST(ImageName, ReportsTheError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "'' must be lower-case"},
      {"Elastic", "upper-case letters are not allowed"},
      {"a//b", "'' must be lower-case"},
      {"a/-b", "'-b' must be lower-case"},
      {"a:", "the tag ''"},
      {"a:b c", "the tag 'b c'"},
      {"gcr.io/${PROJECT}/a", "'${PROJECT}'"},
      {"a@b", "'b' is not a digest"},
      {"a b.c/d", "'a b.c' is not a host"},
  };
  for (const auto& [typed, what] : cases) {
    const auto name = ParseImageName(typed);
    ASSERT_THAT(name, ::testing::Not(IsOk())) << typed;
    EXPECT_THAT(name, StatusIs(Code::kInvalidArgument));
    EXPECT_THAT(name.status().message(), HasSubstr(what));
  }
}

}  // namespace
}  // namespace edl::image
