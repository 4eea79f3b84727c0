#include "base/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"

namespace edl {
namespace {

using testing::HasSubstr;

TEST(Secret, IsEqualToItselfOnly) {
  EXPECT_TRUE(SecretsEqual("a1b2", "a1b2"));
  EXPECT_TRUE(SecretsEqual("", ""));
  EXPECT_FALSE(SecretsEqual("a1b2", "a1b3"));
  EXPECT_FALSE(SecretsEqual("b1b2", "a1b2"));
  EXPECT_FALSE(SecretsEqual("a1b", "a1b2"));
  EXPECT_FALSE(SecretsEqual("a1b2", ""));
}

TEST(Secret, IsReadWithoutTheNewlineAtItsEnd) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "token";
  for (const char* content : {"a 1", "a 1\n", "a 1\r\n"}) {
    ASSERT_OK(WriteFileAtomically(path, content));
    const auto secret = ReadSecretFile(path);
    ASSERT_OK(secret);
    EXPECT_EQ(*secret, "a 1");
  }
}

TEST(Secret, NamesAFileThatIsEmptyOrMissing) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "token";
  const Status missing = ReadSecretFile(path).status();
  EXPECT_THAT(missing, StatusIs(Code::kNotFound));
  EXPECT_THAT(missing.message(), HasSubstr(path.string()));

  ASSERT_OK(WriteFileAtomically(path, "\n"));
  const Status empty = ReadSecretFile(path).status();
  EXPECT_THAT(empty, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(empty.message(), HasSubstr(path.string()));
}

}  // namespace
}  // namespace edl
