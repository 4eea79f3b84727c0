#include "master/process/master_config.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temporary_folder.h"

namespace edl::master {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Flags(const TemporaryFolder& folder, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--job_name=j", "--job_command=true", "--port=1",
                           "--job_dir=" + folder.path().string()});
  return more;
}

TEST(MasterConfig, ReadsTheTokenOfTheJobFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "token") << "secret\n";
  const auto config = ReadMasterConfig(Flags(folder));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->token, "secret");
  EXPECT_EQ(config->token_file, folder.path() / "token");
  EXPECT_FALSE(config->cluster.has_value());
  EXPECT_EQ(config->port, "1");
}

TEST(MasterConfig, PrefersTheFolderOfSecrets) {
  const TemporaryFolder folder;
  const TemporaryFolder secrets;
  std::ofstream(secrets.path() / "token") << "mounted";
  const auto config = ReadMasterConfig(Flags(folder, {"--secret_dir=" + secrets.path().string()}));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->token, "mounted");
}

TEST(MasterConfig, SaysWhatIsMissing) {
  EXPECT_THAT(ReadMasterConfig({"--job_name=j", "--job_command=true"}).status().message(),
              HasSubstr("--job_dir"));
  const TemporaryFolder folder;
  EXPECT_THAT(ReadMasterConfig(Flags(folder)).status().message(), HasSubstr("token"));
}

}  // namespace
}  // namespace edl::master
