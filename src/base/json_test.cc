#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

TEST(ParseJson, RejectsDeeplyNestedText) {
  EXPECT_OK(ParseJson(Nested(kDeepestJson)));
  EXPECT_THAT(ParseJson(Nested(kDeepestJson + 1)).status().message(),
              HasSubstr("nested 65 levels deep; at most 64"));
  EXPECT_THAT(ParseJson(Nested(2'000'000)), StatusIs(Code::kInvalidArgument));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ParseJson(objects), StatusIs(Code::kInvalidArgument));
}

TEST(ParseJson, DoesNotCountBracketsInStrings) {
  const auto parsed = ParseJson("[\"\\\"" + std::string(1000, '[') + "\\\\\", 1]");
  ASSERT_OK(parsed);
  EXPECT_EQ((*parsed)[1], 1);
}

TEST(ParseJson, RejectsInvalidJson) {
  for (const char* text : {"", "]", "[\"", "{\"a\": 1, \"a\": 2}", "1e999", "\"\xff\""}) {
    EXPECT_THAT(ParseJson(text), StatusIs(Code::kInvalidArgument)) << text;
  }
}

TEST(ParseJson, ReadsAllKindsOfValues) {
  const std::string text =
      R"({"b":[null,true,-1,18446744073709551615,0.5,"x",[],{}],"a":{"c":{"d":[[1]]}}})";
  EXPECT_EQ(*ParseJson(text), nlohmann::json::parse(text));
  EXPECT_EQ(ParseJson(" 7 ")->dump(), "7");
  size_t values_left = 15;
  const auto ordered = ParseOrderedJson(text, values_left);
  ASSERT_OK(ordered);
  EXPECT_EQ(ordered->dump(), text);
  EXPECT_EQ(values_left, 0U);
}

TEST(ParseOrderedJson, LimitsTheNumberOfValues) {
  for (const char* text : {"[[[]]]", "[1, 2]", R"({"a": 1, "b": 2})"}) {
    size_t values_left = 2;
    EXPECT_THAT(ParseOrderedJson(text, values_left), StatusIs(Code::kResourceExhausted)) << text;
  }
}

TEST(ParseJson, TakesLinearTime) {
  std::string object = "{\"key\": 0";
  std::string list = "[{}";
  for (int i = 1; i < 200'000; ++i) {
    object += fmt::format(",\"key{}\":{}", i, i);
    list += ",{}";
  }
  size_t values_left = 1'000'000;
  EXPECT_OK(ParseOrderedJson(object + "}", values_left));
  EXPECT_OK(ParseJson(list + "]"));
}

TEST(ReadJsonDownTo, ReplacesDeeperValuesByNull) {
  EXPECT_EQ(ReadJsonDownTo(1, R"([[7], {"a": "]"}, 8])").dump(), "[null,null,8]");
  EXPECT_EQ(ReadJsonDownTo(2, R"({"a": [{"b": "\"]}"}, "]", [[[1], 2]]], "c": {}})").dump(),
            R"({"a":[null,"]",null],"c":{}})");
  const std::string text = R"({"a": [[1, "["], {}], "b": "\\"})";
  EXPECT_EQ(ReadJsonDownTo(3, text), nlohmann::json::parse(text));
  EXPECT_EQ(ReadJsonDownTo(kDeepestJson, Nested(2'000'000)),
            ReadJson(Nested(kDeepestJson).insert(kDeepestJson, "null")));
}

TEST(ReadJsonDownTo, RejectsInvalidJson) {
  for (const char* text : {"", "[[", "[[]", "[[1]]]", "]]", "{\"a\": [}"}) {
    EXPECT_TRUE(ReadJsonDownTo(1, text).is_discarded()) << text;
  }
}

TEST(Excerpt, IsShortWhateverTheValueIs) {
  EXPECT_EQ(Excerpt(nlohmann::json::parse(Nested(1'000))), "a list of 1 value(s)");
  EXPECT_EQ(Excerpt({{"a", 1}}), "an object of 1 key(s)");
  EXPECT_EQ(Excerpt(7), "7");
  EXPECT_THAT(Excerpt(std::string(1'000'000, 'x')), SizeIs(testing::Lt(80)));
}

}  // namespace
}  // namespace edl
