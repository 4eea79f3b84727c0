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
