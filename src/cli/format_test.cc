#include "cli/format.h"

#include <gtest/gtest.h>

namespace edl::cli {
namespace {

TEST(Format, GroupsDigitsByThree) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(-1234), "-1,234");
  EXPECT_EQ(Count(-123), "-123");
}

TEST(Format, ShowsDurationsInSuitableUnits) {
  EXPECT_EQ(Span(0.42), "0.4 s");
  EXPECT_EQ(Span(12.4), "12 s");
  EXPECT_EQ(Span(185), "3 min 05 s");
  EXPECT_EQ(Span(7380), "2 h 03 min");
  EXPECT_EQ(Span(86400 * 3), "3 days");
  EXPECT_EQ(Span(-1), "?");
}

TEST(Format, AlignsColumnsByCharactersNotBytes) {
  EXPECT_EQ(Columns({{"ä", "b"}, {"cc", "d"}}), "ä   b\ncc  d\n");
}

TEST(Format, CutsBetweenCharacters) {
  EXPECT_EQ(Cut("aäb", 2), "aä");
  EXPECT_EQ(Cut("ab", 5), "ab");
}

TEST(Format, EscapesControlCharacters) {
  EXPECT_EQ(EscapeControlChars("a\x1b[2Jb\tc\r"), "a[2Jb c");
}

TEST(Format, AddsColorOnlyOnRequest) {
  EXPECT_EQ(Colored("ok", Color::kGood, UseColor::kYes), "\x1b[32mok\x1b[0m");
  EXPECT_EQ(Colored("ok", Color::kGood, UseColor::kNo), "ok");
}

}  // namespace
}  // namespace edl::cli
