#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Help, FlagsPageInDocsIsUpToDate) {
  const Result<std::string> page = ReadFile(EDL_SOURCE_DIR "/docs/flags.md");

  ASSERT_OK(page);
  EXPECT_EQ(*page, FlagsPage()) << "run: elasticdl help --markdown > docs/flags.md";
}

TEST(Help, WithoutAVerbIsAnErrorOnStandardError) {
  FakePlatform fake;

  EXPECT_EQ(fake.Run({}), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("usage: elasticdl VERB"));
  EXPECT_EQ(fake.out(), "");
}

TEST(Help, OfAVerbIsTheSameByFlagAndByVerb) {
  FakePlatform fake;
  ASSERT_EQ(fake.Run({"train", "--job_name=x", "--help"}), kExitOk);
  const std::string by_flag = fake.out();

  ASSERT_EQ(fake.Run({"help", "train"}), kExitOk);

  EXPECT_EQ(fake.out(), by_flag);
  EXPECT_THAT(by_flag, HasSubstr("usage: elasticdl train --job_name=NAME"));
  EXPECT_THAT(by_flag, HasSubstr("[kubernetes] The master's image."));
  EXPECT_LT(by_flag.find("--job_command"), by_flag.find("--minibatch_size"));
}

TEST(Completion, ExistsForBothShells) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"completion", "bash"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("complete -F _elasticdl elasticdl"));
  EXPECT_EQ(fake.Run({"completion", "zsh"}), kExitOk);
  EXPECT_THAT(fake.out(), StartsWith("#compdef elasticdl"));
  EXPECT_EQ(fake.Run({"completion", "fish"}), kExitUsage);
}

TEST(Main, SuggestsSimilarNamesForAnUnknownVerb) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"trian"}), kExitUsage);
  EXPECT_EQ(fake.err(), "elasticdl: there is no verb 'trian'; did you mean train?\n");
}

TEST(Main, ExplainsHowToQuoteTheProgram) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"train", "--", "python", "my.py"}), kExitUsage);
  EXPECT_THAT(fake.err(), HasSubstr("--job_command='python my.py'"));
  EXPECT_EQ(fake.Run({"evaluate", "--job_name=j"}), kExitUsage);
  EXPECT_THAT(fake.err(), HasSubstr("give --model_def=FOLDER.FILE.SYMBOL"));
  EXPECT_EQ(fake.Run({"--num_workers=2", "train"}), kExitUsage);
  EXPECT_THAT(fake.err(), HasSubstr("elasticdl train --num_workers=2"));
}

TEST(Main, ChecksTheNumberOfArguments) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run({"logs"}), kExitUsage);
  EXPECT_THAT(fake.err(), HasSubstr("an argument is missing; usage: elasticdl logs JOB [REPLICA]"));
  EXPECT_EQ(fake.Run({"list", "now"}), kExitUsage);
  EXPECT_THAT(fake.err(), HasSubstr("unexpected argument 'now'"));
}

}  // namespace
}  // namespace edl::cli
