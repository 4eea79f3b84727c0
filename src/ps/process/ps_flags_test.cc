#include "ps/process/ps_flags.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"

namespace edl::ps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::vector<std::string>& arguments) {
  return ParsePsFlags(arguments).status().message();
}

TEST(PsFlags, ListensOnThisMachineOnlyByDefault) {
  const auto config = ParsePsFlags({});
  ASSERT_OK(config);
  EXPECT_EQ(config->server.host, "127.0.0.1");
  EXPECT_EQ(config->server.port, 0);
  EXPECT_EQ(config->http_port, -1);
}

TEST(PsFlags, ReadsTheTokenWithoutItsLastNewline) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "token") << "secret\n";
  const auto config = ParsePsFlags({"--token_file=" + (folder.path() / "token").string()});
  ASSERT_OK(config);
  EXPECT_EQ(config->server.token, "secret");
}

TEST(PsFlags, RejectsAnEmptyTokenFile) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "token") << "\n";
  EXPECT_THAT(ErrorOf({"--token_file=" + (folder.path() / "token").string()}), HasSubstr("empty"));
}

TEST(PsFlags, RejectsOtherMachinesWithoutAToken) {
  EXPECT_THAT(ErrorOf({"--host=0.0.0.0"}),
              AllOf(HasSubstr("--host=0.0.0.0"), HasSubstr("--token_file")));
  EXPECT_OK(ParsePsFlags({"--host=0.0.0.0", "--insecure"}));
  for (const char* host : {"127.0.0.7", "::1", "localhost"}) {
    EXPECT_OK(ParsePsFlags({std::string("--host=") + host})) << host;
  }
}

TEST(PsFlags, TakesSeveralCheckpointRoots) {
  const auto config =
      ParsePsFlags({"--checkpoint_root=/a", "--lanes=2", "--checkpoint_root", "/b"});
  ASSERT_OK(config);
  EXPECT_THAT(config->server.checkpoint_roots, ElementsAre("/a", "/b"));
  EXPECT_EQ(config->server.lanes, 2U);
  EXPECT_THAT(ErrorOf({"--checkpoint_root"}), HasSubstr("--checkpoint_root needs a folder"));
}

TEST(PsFlags, RejectsWordsThatAreNotFlags) {
  EXPECT_THAT(ErrorOf({"start"}), HasSubstr("'start'"));
}

}  // namespace
}  // namespace edl::ps
