#include "base/file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace edl {
namespace {

TEST(WriteFileAtomically, ReplacesTheContentAndLeavesNothingBeside) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "write_atomically";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteFileAtomically(folder / "state", "old").ok());

  ASSERT_TRUE(WriteFileAtomically(folder / "state", "new").ok());

  EXPECT_EQ(*ReadFile(folder / "state"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  struct stat info {};
  ASSERT_EQ(stat((folder / "state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(WriteFileAtomically, NamesTheFolderThatIsMissing) {
  const Status status = WriteFileAtomically("/nowhere/at/all", "x");

  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace edl
