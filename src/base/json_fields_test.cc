#include "base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/status_matchers.h"

namespace edl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(JsonFields, ReadsEachType) {
  const json object = ReadJson(
      R"({"text": "a", "flag": true, "integer": -3, "count": 18446744073709551615, "real": 0.5,
          "texts": ["x", "y"], "map": {"k": "v"}, "object": {"inner": 1}})");
  JsonFields fields(object, "it");
  uint64_t count = 0;
  float real = 0;
  fields.Take("count", count, 0, UINT64_MAX);
  fields.Take("real", real);
  EXPECT_EQ(count, UINT64_MAX);
  EXPECT_EQ(real, 0.5F);
  EXPECT_EQ(fields.Text("text"), "a");
  EXPECT_TRUE(fields.Flag("flag"));
  EXPECT_EQ(fields.Integer("integer"), -3);
  EXPECT_THAT(fields.Texts("texts"), ElementsAre("x", "y"));
  EXPECT_THAT(fields.TextMap("map"), ElementsAre(Pair("k", "v")));
  EXPECT_EQ(fields.Object("object"), json({{"inner", 1}}));
  EXPECT_OK(fields.Done());
}

TEST(JsonFields, LeavesTheDefaultWhereAFieldIsMissing) {
  const json object = json::object();
  JsonFields fields(object, "it");
  std::string text = "default";
  fields.Take("text", text);
  EXPECT_EQ(text, "default");
  EXPECT_EQ(fields.Integer("integer", 1, 2), 0);
  EXPECT_OK(fields.Done());
}

TEST(JsonFields, KeepsTheFirstError) {
  const json object = ReadJson(R"({"text": 1, "integer": 300})");
  JsonFields fields(object, "it");
  EXPECT_EQ(fields.Text("text"), "");
  EXPECT_EQ(fields.Integer("integer", 0, 255), 0);
  EXPECT_EQ(fields.status(), InvalidArgument("it: text=1 must be a string"));
  EXPECT_EQ(fields.Done(), fields.status());
}

TEST(JsonFields, RejectsNumbersThatDoNotFit) {
  const json object = ReadJson(R"({"huge": 18446744073709551615, "real": 1e39, "half": 0.5})");
  const auto status_of = [&](auto read) {
    JsonFields fields(object, "it");
    read(fields);
    return fields.status().code();
  };
  float real = 0;
  uint64_t count = 0;
  EXPECT_EQ(status_of([](JsonFields& in) { in.Integer("huge"); }), Code::kInvalidArgument);
  EXPECT_EQ(status_of([](JsonFields& in) { in.Integer("half"); }), Code::kInvalidArgument);
  EXPECT_EQ(status_of([&](JsonFields& in) { in.Take("real", real); }), Code::kInvalidArgument);
  EXPECT_EQ(status_of([&](JsonFields& in) { in.Take("half", count, 0, 9); }),
            Code::kInvalidArgument);
}

TEST(JsonFields, RejectsAnUnknownField) {
  const json object = ReadJson(R"({"nmae": "a"})");
  JsonFields fields(object, "it");
  fields.Text("name");
  EXPECT_OK(fields.status());
  EXPECT_EQ(fields.Done(), InvalidArgument("it: unknown field 'nmae'; expected one of name"));
}

TEST(JsonFields, RejectsAValueThatIsNotAnObject) {
  const json list = json::array({1});
  JsonFields fields(list, "it");
  EXPECT_EQ(fields.Text("name"), "");
  EXPECT_THAT(fields.Done().message(), HasSubstr("it: expected a JSON object"));

  const json object = ReadJson(R"({"inner": 1})");
  JsonFields outer(object, "it");
  EXPECT_EQ(outer.Object("inner"), json::object());
  EXPECT_EQ(outer.Object("missing"), json::object());
  EXPECT_EQ(outer.status(), InvalidArgument("it: inner=1 must be an object"));
}

}  // namespace
}  // namespace edl
