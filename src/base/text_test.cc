#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl {
namespace {

using testing::ElementsAre;

TEST(Text, TrimsBothEnds) {
  EXPECT_EQ(Trim(" \t a b\r\n\v\f"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(""), "");
}

TEST(Text, TrimsToAViewOfTheSameText) {
  const std::string_view blank = " \n";
  EXPECT_EQ(Trim(blank), "");
  EXPECT_EQ(Trim(blank).data(), blank.data() + blank.size());
}

TEST(Text, SplitsAtEachSeparator) {
  EXPECT_THAT(Split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
}

TEST(Text, SplitsAListWithoutItsEmptyPieces) {
  EXPECT_THAT(SplitList(" a, b c ,,d,"), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(SplitList(" , "), ElementsAre());
}

}  // namespace
}  // namespace edl
