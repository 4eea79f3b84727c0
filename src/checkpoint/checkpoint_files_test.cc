#include "checkpoint/checkpoint_files.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"

namespace edl::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointFilesTest : public testing::Test {
 protected:
  CheckpointFilesTest() { fs::create_directories(root_ / "version-1"); }
  ~CheckpointFilesTest() override { fs::remove_all(folder_); }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / fmt::format("checkpoint-files-{}", getpid());
  const fs::path root_ = folder_ / "root";
  const CheckpointFiles files_ = CheckpointFiles::Below({root_});
};

TEST_F(CheckpointFilesTest, CreatesOpensAndRemovesFilesBelowTheRoot) {
  const fs::path path = root_ / "version-1" / "part";
  EXPECT_OK(files_.Create(path));
  EXPECT_OK(files_.Open(path));
  files_.Remove(path);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(CheckpointFilesTest, RefusesPathsThatLeaveTheRoot) {
  std::ofstream(folder_ / "victim") << "important";
  for (const fs::path& path :
       {folder_ / "victim", root_ / ".." / "victim", root_, fs::path("victim"), fs::path("/"),
        folder_ / "root-of-another" / "part"}) {
    EXPECT_FALSE(files_.Create(path).ok()) << path;
    EXPECT_FALSE(files_.Open(path).ok()) << path;
    files_.Remove(path);
  }
  EXPECT_THAT(files_.Create(folder_ / "victim").status().message(), HasSubstr("--checkpoint_root"));
  EXPECT_EQ(fs::file_size(folder_ / "victim"), 9U);
}

TEST_F(CheckpointFilesTest, FollowsNoSymbolicLinkBelowTheRoot) {
  fs::create_directories(folder_ / "elsewhere");
  std::ofstream(folder_ / "victim") << "important";
  fs::create_directory_symlink(folder_ / "elsewhere", root_ / "version-2");
  fs::create_symlink(folder_ / "victim", root_ / "version-1" / "part");
  EXPECT_FALSE(files_.Create(root_ / "version-2" / "part").ok());
  EXPECT_FALSE(files_.Create(root_ / "version-1" / "part").ok());
  EXPECT_FALSE(files_.Open(root_ / "version-1" / "part").ok());
  EXPECT_EQ(fs::file_size(folder_ / "victim"), 9U);
}

TEST_F(CheckpointFilesTest, TakesARootByTheNameThatItsLinksLeadTo) {
  fs::create_directory_symlink(root_, folder_ / "link");
  const CheckpointFiles by_link = CheckpointFiles::Below({folder_ / "link"});
  EXPECT_OK(by_link.Create(folder_ / "link" / "a"));
  EXPECT_OK(by_link.Create(root_ / "b"));
}

TEST_F(CheckpointFilesTest, ReplacesNoFile) {
  const fs::path path = root_ / "version-1" / "part";
  std::ofstream(path) << "there";
  EXPECT_THAT(files_.Create(path), StatusIs(Code::kAlreadyExists));
  EXPECT_EQ(fs::file_size(path), 5U);
}

TEST_F(CheckpointFilesTest, RefusesAPipeWithoutWaitingForItsWriter) {
  const fs::path path = root_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Status status = files_.Open(path).status();
  EXPECT_THAT(status, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(status.message(), HasSubstr("not a regular file"));
  EXPECT_THAT(CheckpointFiles::Anywhere().Open(path), StatusIs(Code::kInvalidArgument));
  EXPECT_FALSE(files_.Open(root_ / "version-1").ok()) << "a folder";
}

TEST_F(CheckpointFilesTest, AllowsNothingWithoutARoot) {
  const Status status = CheckpointFiles::Below({}).Create(root_ / "part").status();
  EXPECT_THAT(status, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(status.message(), HasSubstr("start it with --checkpoint_root=DIR"));
}

}  // namespace
}  // namespace edl::checkpoint
