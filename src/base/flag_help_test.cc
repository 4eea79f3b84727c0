#include "base/flag_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/completion.h"

namespace edl {
namespace {

using ::testing::HasSubstr;

const FlagTable& Table() {
  static const FlagTable table({
      {.name = "rare", .group = "Rest", .help = "Seldom needed.", .scope = "cluster"},
      {.name = "place",
       .default_value = "here",
       .group = "Main",
       .help = "Where.",
       .choices = {"", "here", "there"},
       .common = true},
      {.name = "path",
       .group = "Main",
       .help = "It's a file.",
       .value_name = "PATH",
       .letter = 'f'},
      {.name = "inner", .group = "Main", .help = "Nobody's.", .hidden = true},
  });
  return table;
}

TEST(FlagHelp, ListsCommonFlagsFirstAndMarksScopes) {
  EXPECT_EQ(FlagHelp(Table()),
            "Common flags\n"
            "  --place=here|there              Where. Default: here.\n"
            "\n"
            "Rest\n"
            "  --rare=VALUE                    [cluster] Seldom needed.\n"
            "\n"
            "Main\n"
            "  -f, --path=PATH                 It's a file.\n");
}

TEST(FlagMarkdown, HasATableForEachGroup) {
  EXPECT_EQ(FlagMarkdown(Table()),
            "\n## Rest\n\n| flag | default | meaning |\n|---|---|---|\n"
            "| `--rare` |  | Seldom needed. *[cluster]* |\n"
            "\n## Main\n\n| flag | default | meaning |\n|---|---|---|\n"
            "| `--place` | `here` | Where. One of here\\|there. |\n"
            "| `--path` |  | It's a file. Also `-f`. |\n");
}

TEST(Completion, OffersFlagsChoicesAndWords) {
  const std::vector<CompletedCommand> commands = {
      {.name = "go", .summary = "Goes: far", .flags = &Table()},
      {.name = "say", .summary = "Says", .words = {"yes", "no"}, .words_from = "ls"}};

  const std::string bash = BashCompletion("tool", commands);
  EXPECT_THAT(bash, HasSubstr("compgen -W 'go say'"));
  EXPECT_THAT(bash, HasSubstr("'--rare --place --path'"));
  EXPECT_THAT(bash, HasSubstr("--place) COMPREPLY=($(compgen -W 'here there'"));
  EXPECT_THAT(bash, HasSubstr("'yes no'\" $(ls)\""));
  const std::string zsh = ZshCompletion("tool", commands);
  EXPECT_THAT(zsh, HasSubstr("'go:Goes\\: far'"));
  EXPECT_THAT(zsh, HasSubstr("'--path=[It'\\''s a file.]:path:_files'"));
}

TEST(Completion, KnowsCommandsOfTwoWords) {
  const std::vector<CompletedCommand> commands = {
      {.name = "go", .summary = "Goes"},
      {.name = "zoo init", .summary = "Begins", .flags = &Table()},
      {.name = "zoo push", .summary = "Ends"}};
  const std::string bash = BashCompletion("tool", commands);
  EXPECT_THAT(bash, HasSubstr("compgen -W 'go zoo'"));
  EXPECT_THAT(bash, HasSubstr("compgen -W 'init push'"));
  EXPECT_THAT(bash, HasSubstr("    'zoo init')\n"));
  const std::string zsh = ZshCompletion("tool", commands);
  EXPECT_THAT(zsh, HasSubstr("'zoo:init, push'"));
  EXPECT_THAT(zsh, HasSubstr("compadd init push"));
}

}  // namespace
}  // namespace edl
