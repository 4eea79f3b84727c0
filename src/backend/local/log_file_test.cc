#include "backend/local/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"

namespace edl::backend::local {
namespace {

constexpr int64_t kAll = 1000;

TEST(LogFile, KeepsOffsetsOverRotations) {
  const TemporaryFolder folder;
  Result<LogFile> log = LogFile::Open(folder.path(), "worker-0", 10);
  ASSERT_OK(log);

  log->Append("0123456789abcdefghijKLMNO");  // two full files and a half

  const auto oldest = ReadLog(folder.path(), "worker-0", 0, kAll);
  ASSERT_OK(oldest);
  EXPECT_EQ(oldest->text, "abcdefghijKLMNO") << "the first file is gone";
  EXPECT_EQ(oldest->next_offset, 25);
  EXPECT_EQ(ReadLog(folder.path(), "worker-0", 18, 4)->text, "ijKL");
  EXPECT_EQ(ReadLog(folder.path(), "worker-0", 23, kAll)->text, "NO");
  EXPECT_EQ(ReadLog(folder.path(), "worker-0", -7, kAll)->text, "ijKLMNO");
  EXPECT_EQ(ReadLog(folder.path(), "worker-0", -7, 3)->next_offset, 21);
}

TEST(LogFile, GoesOnWhereAnEarlierWriterEnded) {
  const TemporaryFolder folder;
  for (const char* text : {"0123456", "789abc", "defghijklm"}) {
    Result<LogFile> log = LogFile::Open(folder.path(), "master", 10);
    ASSERT_OK(log);
    log->Append(text);
  }

  const auto piece = ReadLog(folder.path(), "master", 12, kAll);

  ASSERT_OK(piece);
  EXPECT_EQ(piece->text, "cdefghijklm");
  EXPECT_EQ(piece->next_offset, 23);
}

TEST(LogFile, KeepsItsOffsetsWhenTheLimitChanges) {
  const TemporaryFolder folder;
  LogFile::Open(folder.path(), "master", 10)->Append("0123456789abc");

  LogFile::Open(folder.path(), "master", 4)->Append("defghijk");

  const auto piece = ReadLog(folder.path(), "master", 19, kAll);
  ASSERT_OK(piece);
  EXPECT_EQ(piece->text, "jk");
}

TEST(LogFile, DoesNotTakeTheFilesOfANameThatStartsLikeIt) {
  const TemporaryFolder folder;
  LogFile::Open(folder.path(), "worker-1", 4)->Append("one");
  LogFile::Open(folder.path(), "worker-10", 4)->Append("many bytes of ten");

  EXPECT_EQ(ReadLog(folder.path(), "worker-1", 0, kAll)->text, "one");
}

TEST(LogFile, CountsWhatCouldNotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes into any folder";
  const TemporaryFolder folder;
  Result<LogFile> log = LogFile::Open(folder.path(), "worker-0", 4);
  ASSERT_OK(log);
  log->Append("full");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0500));

  log->Append("these are lost");

  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
  log->Append("x");
  const auto piece = ReadLog(folder.path(), "worker-0", -100, kAll);
  EXPECT_THAT(piece->text, testing::HasSubstr("]\nx"));
}

TEST(LogFile, SaysThatALogIsMissing) {
  const TemporaryFolder folder;

  EXPECT_THAT(ReadLog(folder.path(), "worker-7", 0, kAll), StatusIs(Code::kNotFound));
}

}  // namespace
}  // namespace edl::backend::local
