#include "base/file.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/status_matchers.h"
#include "base/testing/synced_files.h"

namespace edl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WriteFileAtomically, ReplacesTheContentAndLeavesNoTemporaryFile) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "write_atomically";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_OK(WriteFileAtomically(folder / "state", "old"));

  ASSERT_OK(WriteFileAtomically(folder / "state", "new"));

  EXPECT_EQ(*ReadFile(folder / "state"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  struct stat info {};
  ASSERT_EQ(stat((folder / "state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

// Without the folder's own sync the file may be gone, or be the old one, after a loss of power.
TEST(WriteFileAtomically, SyncsTheFileAndThenItsFolder) {
  const std::filesystem::path folder =
      std::filesystem::canonical(testing::TempDir()) / "sync_folder";
  std::filesystem::create_directories(folder);
  Synced().clear();

  ASSERT_OK(WriteFileAtomically(folder / "state", "x"));

  EXPECT_THAT(Synced(), ElementsAre(HasSubstr("sync_folder/state."), folder.string()));
}

TEST(SyncFolder, NamesTheFolderThatIsMissing) {
  const Status status = SyncFolder("/nowhere/at/all");

  EXPECT_THAT(status, StatusIs(Code::kNotFound));
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/at/all"));
}

TEST(WriteFileAtomically, NamesTheFolderThatIsMissing) {
  const Status status = WriteFileAtomically("/nowhere/at/all", "x");

  EXPECT_THAT(status, StatusIs(Code::kNotFound));
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace edl
