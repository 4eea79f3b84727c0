#include "base/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const FlagTable& Table() {
  static const FlagTable table({
      {.name = "image_name"},
      {.name = "image_pull_policy",
       .default_value = "Always",
       .choices = {"Never", "IfNotPresent", "Always"}},
      {.name = "num_ps_pods", .type = FlagType::kInt, .default_value = "0", .at_least = 0},
      {.name = "feed", .default_value = "feed", .aliases = {"dataset_fn"}},
      {.name = "use_async", .type = FlagType::kBool, .default_value = "false"},
      {.name = "task_manager", .type = FlagType::kBool, .default_value = "true"},
      {.name = "level", .default_value = "INFO", .choices = {"DEBUG", "INFO"}, .upper_case = true},
      {.name = "max_step", .type = FlagType::kInt, .default_value = "0"},
      {.name = "max_bad", .type = FlagType::kInt, .default_value = "0", .not_in_original = true},
      {.name = "follow", .type = FlagType::kSwitch, .default_value = "false", .letter = 'f'},
      {.name = "where", .default_value = "here", .environment = "WHERE"},
      {.name = "secret", .redact = [](std::string_view) { return std::string("***"); }},
  });
  return table;
}

Result<FlagValues> Parse(std::vector<std::string> arguments) {
  return ParseFlags(Table(), arguments);
}

std::string ErrorOf(std::vector<std::string> arguments) {
  const Result<FlagValues> values = Parse(std::move(arguments));
  EXPECT_THAT(values, ::testing::Not(IsOk()));
  EXPECT_THAT(values, StatusIs(Code::kInvalidArgument));
  return values.status().message();
}

TEST(ParseFlags, AcceptsAValueAfterEqualsOrAsTheNextArgument) {
  EXPECT_EQ(Parse({"--image_name=a:1"})->String("image_name"), "a:1");
  EXPECT_EQ(Parse({"--image_name", "a:1"})->String("image_name"), "a:1");
  EXPECT_EQ(Parse({"--image_name=a=b"})->String("image_name"), "a=b");
  EXPECT_EQ(Parse({"--image_name="})->String("image_name"), "");
}

TEST(ParseFlags, UsesTheLastOfSeveralValues) {
  EXPECT_EQ(Parse({"--num_ps_pods=1", "--num_ps_pods=2"})->Int("num_ps_pods"), 2);
}

TEST(ParseFlags, RecordsWhichFlagsWereGivenTwoValues) {
  const std::vector<std::string> one = {"num_ps_pods"};
  EXPECT_EQ(Parse({"--num_ps_pods=1", "--num_ps=2", "--num_ps=3"})->replaced(), one);
  EXPECT_TRUE(Parse({"--num_ps_pods=1", "--num_ps_pods=1"})->replaced().empty());
}

TEST(ParseFlags, ReadsBoolsAsNumbersAndSwitches) {
  for (const char* spelling : {"1", "on", "ON"}) {
    EXPECT_TRUE(Parse({std::string("--use_async=") + spelling})->Bool("use_async")) << spelling;
  }
  for (const char* spelling : {"0", "off"}) {
    EXPECT_FALSE(Parse({std::string("--task_manager=") + spelling})->Bool("task_manager"));
  }
}

TEST(ParseFlags, ResolvesAUniqueAbbreviation) {
  EXPECT_EQ(Parse({"--num_ps=3"})->Int("num_ps_pods"), 3);
  EXPECT_EQ(Parse({"--dataset=x"})->String("feed"), "x");
}

TEST(ParseFlags, NamesTheCandidatesOfAnAmbiguousAbbreviation) {
  EXPECT_EQ(ErrorOf({"--image=x"}),
            "--image is ambiguous: it matches --image_name, --image_pull_policy");
}

TEST(ParseFlags, PrefersOlderFlagsForAnAbbreviation) {
  const Result<FlagValues> values = Parse({"--max=7"});

  ASSERT_OK(values);
  EXPECT_EQ(values->Int("max_step"), 7);
  EXPECT_EQ(values->Int("max_bad"), 0);
}

TEST(ParseFlags, SuggestsSimilarNamesForAnUnknownFlag) {
  EXPECT_EQ(ErrorOf({"--num_sp_pods=1"}),
            "there is no flag --num_sp_pods; did you mean --num_ps_pods?");
  EXPECT_EQ(ErrorOf({"--zzzzzzzz"}), "there is no flag --zzzzzzzz");
  EXPECT_EQ(ErrorOf({"-x"}), "there is no flag -x");
}

TEST(ParseFlags, ReadsABoolWithoutAValueAsTheOppositeOfItsDefault) {
  EXPECT_TRUE(Parse({"--use_async"})->Bool("use_async"));
  EXPECT_FALSE(Parse({"--task_manager"})->Bool("task_manager"));
  EXPECT_TRUE(Parse({"--use_async", "--task_manager"})->Bool("use_async"));
}

TEST(ParseFlags, ReadsTheOriginalsSpellingsOfABool) {
  for (const char* spelling : {"true", "True", "YES", "t", "y"}) {
    EXPECT_TRUE(Parse({"--use_async", spelling})->Bool("use_async")) << spelling;
  }
  for (const char* spelling : {"false", "No", "f", "n"}) {
    EXPECT_FALSE(Parse({std::string("--task_manager=") + spelling})->Bool("task_manager"));
  }
}

TEST(ParseFlags, RejectsABoolThatIsNeitherTrueNorFalse) {
  EXPECT_EQ(ErrorOf({"--use_async=2"}),
            "--use_async=2 is neither true nor false; write --use_async=true or --use_async=false");
}

TEST(ParseFlags, NamesFlagAndValueOfAWrongNumber) {
  EXPECT_EQ(ErrorOf({"--num_ps=two"}), "--num_ps_pods=two is not a whole number");
  EXPECT_EQ(ErrorOf({"--num_ps=1.5"}), "--num_ps_pods=1.5 is not a whole number");
  EXPECT_EQ(ErrorOf({"--num_ps="}), "--num_ps_pods= is not a whole number");
  EXPECT_EQ(ErrorOf({"--num_ps", "-1"}), "--num_ps_pods=-1: the smallest allowed value is 0");
  EXPECT_THAT(ErrorOf({"--num_ps=99999999999999999999"}), HasSubstr("too large"));
}

TEST(ParseFlags, ListsTheChoicesOfAWrongValue) {
  EXPECT_EQ(ErrorOf({"--image_pull_policy=Sometimes"}),
            "--image_pull_policy=Sometimes is not one of 'Never', 'IfNotPresent', 'Always'");
}

TEST(ParseFlags, UpperCasesBeforeItChecksChoices) {
  EXPECT_EQ(Parse({"--level=debug"})->String("level"), "DEBUG");
}

TEST(ParseFlags, ReadsAnArgumentWithADashAsAValueOnlyIfItContainsASpace) {
  EXPECT_EQ(ErrorOf({"--image_name", "--use_async"}),
            "--image_name needs a value: --image_name=VALUE");
  EXPECT_EQ(ErrorOf({"--image_name"}), "--image_name needs a value: --image_name=VALUE");
  EXPECT_EQ(Parse({"--image_name", "-c 'a b'"})->String("image_name"), "-c 'a b'");
}

TEST(ParseFlags, KeepsPositionalArguments) {
  EXPECT_THAT(Parse({"job", "--follow", "worker", "--", "--level"})->arguments(),
              ElementsAre("job", "worker", "--level"));
  EXPECT_TRUE(Parse({"job", "-f", "worker"})->Bool("follow"));
}

TEST(FlagValues, KeepTheirSourceAndTheOneWithTheHighestPriority) {
  Result<FlagValues> values = Parse({"--num_ps=3"});
  ASSERT_OK(values);

  ASSERT_OK(values->Set("num_ps_pods", "4", FlagSource::kFile));
  ASSERT_OK(values->Set("feed", "read", FlagSource::kFile));
  ASSERT_OK(SetFromEnvironment(*values, [](const char* name) {
    return std::string_view(name) == "WHERE" ? "there" : nullptr;
  }));

  EXPECT_EQ(values->Int("num_ps_pods"), 3);
  EXPECT_EQ(values->source("num_ps_pods"), FlagSource::kCommandLine);
  EXPECT_EQ(values->source("feed"), FlagSource::kFile);
  EXPECT_EQ(values->String("where"), "there");
  EXPECT_EQ(values->source("where"), FlagSource::kEnvironment);
  EXPECT_FALSE(values->given("level"));
}

TEST(FlagValues, RejectBytesThatAJobFileCannotStore) {
  EXPECT_THAT(Parse({"--secret=\xFFx"}).status().message(),
              HasSubstr("--secret is not valid UTF-8"));
}

TEST(FlagValues, ShowNoSecrets) { EXPECT_EQ(Parse({"--secret=abc"})->ShownText("secret"), "***"); }

}  // namespace
}  // namespace edl
