#include "job/envs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ParseEnvs, AllowsCommasInValues) {
  EXPECT_THAT(*ParseEnvs("a=b,c=d,e,f=g"),
              ElementsAre(Pair("a", "b"), Pair("c", "d,e"), Pair("f", "g")));
}

TEST(ParseEnvs, AllowsEqualsSignsInValues) {
  EXPECT_THAT(*ParseEnvs("a=b=c,URL=http://x/?q=1"),
              ElementsAre(Pair("URL", "http://x/?q=1"), Pair("a", "b=c")));
}

TEST(ParseEnvs, AcceptsEmptyValuesAndNoVariables) {
  EXPECT_THAT(*ParseEnvs("A=,B=1"), ElementsAre(Pair("A", ""), Pair("B", "1")));
  EXPECT_TRUE(ParseEnvs(" ")->empty());
}

TEST(ParseEnvs, ReadsAJsonObject) {
  EXPECT_THAT(*ParseEnvs(R"({"A": "1,B=2", "N": 3, "T": true})"),
              ElementsAre(Pair("A", "1,B=2"), Pair("N", "3"), Pair("T", "true")));
}

TEST(ParseEnvs, ReportsThePositionOfAnError) {
  EXPECT_EQ(ParseEnvs("o ops").status().message(),
            "'o ops' at character 1 does not begin with NAME=");
  EXPECT_EQ(ParseEnvs(R"({"A": 1, "A": 2})").status().message(), "'A' is given twice");
  EXPECT_THAT(ParseEnvs(R"({"A": [1]})"), ::testing::Not(IsOk()));
  EXPECT_THAT(ParseEnvs(R"({"A=B": "1"})"), ::testing::Not(IsOk()));
}

TEST(ParseEnvs, AcceptsWhatThePublishedClientAcceptsWithARemark) {
  EXPECT_THAT(*ParseEnvs("A"), ElementsAre(Pair("A", "")));
  EXPECT_THAT(*ParseEnvs("A,B,C=1"), ElementsAre(Pair("A", ""), Pair("B", ""), Pair("C", "1")));
  EXPECT_THAT(*ParseEnvs("A=1,B=2,A=3"), ElementsAre(Pair("A", "3"), Pair("B", "2")));

  EXPECT_THAT(EnvsRemarks("A,B=1"), ElementsAre("A has no '=' and is set to an empty value"));
  EXPECT_THAT(EnvsRemarks("A=1,B=2,A=3"), ElementsAre("A is given twice; the last value is used"));
  EXPECT_THAT(EnvsRemarks("A = 1,B=x,y"), IsEmpty());
}

TEST(RedactEnvs, ShowsNamesOnly) {
  EXPECT_EQ(RedactEnvs("TOKEN=abc,USER=me"), "TOKEN=***,USER=***");
  EXPECT_EQ(RedactEnvs("secret without a name"), "***");
  EXPECT_EQ(RedactEnvs(""), "");
}

}  // namespace
}  // namespace edl::job
