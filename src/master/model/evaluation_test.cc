#include "master/model/evaluation.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::master {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ParseEvaluation, ReadsMetricsAndNestedMetrics) {
  const auto evaluation = ParseEvaluation(
      30, R"({"text": "t", "metrics": {"accuracy": 0.97, "output": {"auc": 1}, "loss": null}})");

  ASSERT_OK(evaluation);
  EXPECT_EQ(evaluation->version, 30);
  EXPECT_EQ(evaluation->metrics.at("accuracy"), 0.97);
  EXPECT_EQ(evaluation->metrics.at("output.auc"), 1);
  EXPECT_TRUE(std::isnan(evaluation->metrics.at("loss")));
  EXPECT_EQ(Describe(*evaluation), "accuracy = 0.97, loss = nan, output.auc = 1 (version 30)");
}

TEST(ParseEvaluation, MakesTheTextFitForOneLine) {
  const auto evaluation = ParseEvaluation(1, R"({"text": "a\n\u001b[2J\tb", "metrics": {}})");

  ASSERT_OK(evaluation);
  EXPECT_EQ(evaluation->text, "a\\n\\x1b[2J\\tb");
  const auto longer =
      ParseEvaluation(1, R"({"metrics": {}, "text": ")" + std::string(10000, 'x') + "\"}");
  ASSERT_OK(longer);
  EXPECT_EQ(longer->text.size(), 4096U);
}

TEST(ParseEvaluation, RejectsEverythingElse) {
  for (const std::string text :
       {"", "nan", "[]", "{}", R"({"text": 1, "metrics": {}})", R"({"text": "", "metrics": []})",
        R"({"text": "", "metrics": {"a": "b"}})", R"({"text": "", "metrics": {"a": {"b": {}}}})"}) {
    EXPECT_THAT(ParseEvaluation(1, text).status().message(),
                HasSubstr("the result of evaluation_merge is not"))
        << text;
  }
}

TEST(ParseEvaluation, BoundsTheMetrics) {
  std::string metrics;
  for (int i = 0; i < 101; ++i) metrics += (i > 0 ? ",\"m" : "\"m") + std::to_string(i) + "\":1";
  EXPECT_THAT(
      ParseEvaluation(1, R"({"text": "", "metrics": {)" + metrics + "}}").status().message(),
      HasSubstr("more than 100 metrics"));
}

}  // namespace
}  // namespace edl::master
