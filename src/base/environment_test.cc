#include "base/environment.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl {
namespace {

using ::testing::Contains;
using ::testing::Pair;

TEST(Environment, ReadsVariables) {
  ASSERT_EQ(setenv("EDL_TEST_VARIABLE", "a=b", 1), 0);
  EXPECT_EQ(Variable("EDL_TEST_VARIABLE"), "a=b");
  EXPECT_THAT(Environment(), Contains(Pair("EDL_TEST_VARIABLE", "a=b")));
  ASSERT_EQ(unsetenv("EDL_TEST_VARIABLE"), 0);
  EXPECT_EQ(Variable("EDL_TEST_VARIABLE"), "");
  EXPECT_FALSE(Environment().contains("EDL_TEST_VARIABLE"));
}

TEST(Environment, FindsTheRunningProgram) { EXPECT_EQ(ThisProgram().filename(), "base_test"); }

}  // namespace
}  // namespace edl
