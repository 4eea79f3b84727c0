#include "kube/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(ToYaml, KeepsTextTextAndNumbersNumbers) {
  EXPECT_EQ(ToYaml({{"name", "iris"},
                    {"index", "0"},
                    {"port", 2222},
                    {"large", 18'446'744'073'709'551'615U},
                    {"part", 0.1},
                    {"on", true},
                    {"empty", nlohmann::json::object()},
                    {"list", {"a", {{"b", nullptr}}}}}),
            "empty: {}\n"
            "index: \"0\"\n"
            "large: 18446744073709551615\n"
            "list:\n"
            "  - \"a\"\n"
            "  - b: ~\n"
            "name: \"iris\"\n"
            "\"on\": true\n"  // without quotes, kubectl reads the key true
            "part: 0.1\n"
            "port: 2222\n");
}

TEST(ReadYaml, LimitsTheValuesOfJson) {
  std::string list = "[0";
  for (size_t i = 2; i < kMostYamlValues / 2; ++i) list += ",0";
  list += "]\n";
  EXPECT_OK(ReadYaml(list + "---\n" + list));
  EXPECT_THAT(ReadYaml(list + "---\n" + list + "---\n" + list).status().message(),
              HasSubstr("document 3, line 4: too large: at most 500000 values"));
}

TEST(ToOrderedYaml, QuotesOnlyWhatWouldChange) {
  const ordered_json value = {
      {"z", "plain text"}, {"image", "example/a:1.0"}, {"flag", "--epochs=5"}, {"path", "/data"},
      {"word", "yes"},     {"number", "0x10"},         {"colon", "a: b"},      {"hash", "a #b"},
      {"empty", ""},       {"script", "a\n\n  b\n"},   {"lines", "a\nb"}};
  const std::string text = ToOrderedYaml(value);
  EXPECT_EQ(text,
            "z: plain text\n"
            "image: example/a:1.0\n"
            "flag: --epochs=5\n"
            "path: /data\n"
            "word: \"yes\"\n"
            "number: \"0x10\"\n"
            "colon: \"a: b\"\n"
            "hash: \"a #b\"\n"
            "empty: \"\"\n"
            "script: |\n"
            "  a\n"
            "\n"
            "    b\n"
            "lines: \"a\\nb\"\n");
  const auto again = ReadYaml(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->front().value, value);
}

ordered_json ValueOf(std::string_view text) {
  const auto documents = ReadYaml(text);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.ok() ? documents->front().value : ordered_json();
}

TEST(ReadYaml, GivesScalarsTheTypesThatKubectlGivesThem) {
  const std::vector<std::pair<std::string, ordered_json>> cases = {
      {"1", 1},
      {"-7", -7},
      {"+7", 7},
      {"0755", 493},
      {"0o755", 493},
      {"0x1F", 31},
      {"0b101", 5},
      {"1_000", 1000},
      {"0.5", 0.5},
      {".5", 0.5},
      {"1e3", 1000.0},
      {"08", 8.0},
      {"yes", true},
      {"Off", false},
      {"~", nullptr},
      {"null", nullptr},
      {"\"1\"", "1"},
      {"'yes'", "yes"},
      {"!!str 1", "1"},
      {"1.5Gi", "1.5Gi"},
      {"1:30", "1:30"},
      {"-", ordered_json::array({nullptr})},
      {"0x", "0x"},
      {"--5", "--5"},
      {"2019-04-01", "2019-04-01"},
      {"1e999", "1e999"},
      {"9223372036854775808", 9'223'372'036'854'775'808U},
      {"!!int 3", 3},
  };
  for (const auto& [text, value] : cases) {
    EXPECT_EQ(ValueOf("a:\n  " + text)["a"], value) << text;
  }
}

TEST(ReadYaml, ReplacesAliasesAndMergeKeys) {
  EXPECT_EQ(ValueOf("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\nd: {<<: [*x, {r: 4}]}\n"),
            ordered_json::parse(R"({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 2},
                                    "c": {"q": 3, "p": 1}, "d": {"p": 1, "q": 2, "r": 4}})"));
}

TEST(ReadYaml, KeepsTheTextOfEachDocument) {
  const std::string text =
      "# first\n---\na: 1 # one\n--- # two\n{\"b\": \"\\ud83d\\ude00\"}\n---\n---\nc: |\n  ---x\n";
  const auto documents = ReadYaml(text);
  ASSERT_TRUE(documents.ok()) << documents.status();
  std::string all;
  std::vector<int> numbers;
  for (const YamlDocument& document : *documents) {
    all += document.text;
    numbers.push_back(document.number);
  }
  EXPECT_EQ(all, text);
  EXPECT_THAT(numbers, ::testing::ElementsAre(0, 1, 2, 0, 3));
  EXPECT_EQ(documents->back().value["c"], "---x\n");
}

TEST(ReadYaml, AcceptsDirectivesAndAnEmptyFile) {
  EXPECT_EQ(ValueOf(""), nullptr);
  const auto documents = ReadYaml("%YAML 1.2\n---\na: 1\n...\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(documents->back().value["a"], 1);
}

TEST(ReadYaml, NamesTheDocumentAndLineOfAnError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a: 1\n---\nb: [1\nc: 2\n", "document 2, line 4: not YAML: "},
      {"a: 1\na: 2\n", "document 1, line 2: 'a' is given twice"},
      {"a: 1\n---\n{b: 1, b: 2}\n", "document 2, line 3: 'b' is given twice"},
      {"x: 1\n? [a]\n: 1\n", "document 1, line 2: a key must be text"},
      {"x: 1\ny: !foo bar\n", "document 1, line 2: the tag !foo of 'bar' is not supported"},
      {"x: 1\ny: {<<: 3}\n", "document 1, line 2: the value of '<<' must be a map"},
      {"a: 1\n...\nb: 2\n", "document 1, line 3: more text follows the end of the document"},
      {"{a: 1}\n,\n", "document 1, line 2: more text follows the end of the document"},
      {"a: \xff\n", "document 1, line 1: the text is not UTF-8"},
      {"a: *b\n", "document 1, line 1: not YAML: "},
      {"a: &x [*x]\n", "document 1, line 1: nested deeper than 64 levels"},
      {std::string(200, '['), "document 1, line 1: "},
      {std::string(20'000, '['), "document 1, line 1: "},
  };
  for (const auto& [text, message] : cases) {
    const auto documents = ReadYaml(text);
    ASSERT_FALSE(documents.ok()) << text;
    EXPECT_EQ(documents.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(documents.status().message(), HasSubstr(message));
  }
}

TEST(ReadYaml, LimitsWhatAliasesStandFor) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb +=
        fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  const auto documents = ReadYaml(bomb);
  ASSERT_FALSE(documents.ok());
  EXPECT_THAT(documents.status().message(), HasSubstr("too large"));

  std::string long_text = "a: &a " + std::string(1 << 20, 'x') + "\nb: [";
  for (int i = 0; i < 20; ++i) long_text += "*a, ";
  EXPECT_FALSE(ReadYaml(long_text + "]\n").ok());
  EXPECT_FALSE(ReadYaml(std::string(kLargestYaml + 1, ' ')).ok());
}

TEST(LineOf, FindsKeysAndItems) {
  const auto documents = ReadYaml("x: 1\n---\na:\n  - b: 1\n  - c:\n      d: 2\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  const YamlDocument& document = documents->back();
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{}, 3},         {{"a"}, 3},           {{"a", "0"}, 4},
      {{"a", "1"}, 5}, {{"a", "1", "c"}, 5}, {{"a", "1", "c", "d"}, 6},
      {{"a", "7"}, 3}, {{"none"}, 3},
  };
  for (const auto& [path, line] : cases) EXPECT_EQ(LineOf(document, path), line);
}

}  // namespace
}  // namespace edl::kube
