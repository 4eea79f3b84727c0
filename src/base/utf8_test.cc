#include "base/utf8.h"

#include <gtest/gtest.h>

namespace edl {
namespace {

TEST(IsUtf8, AcceptsEveryLength) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain"));
  EXPECT_TRUE(IsUtf8("gr\xC3\xBC\xC3\x9F"));
  EXPECT_TRUE(IsUtf8("\xE2\x82\xAC"));
  EXPECT_TRUE(IsUtf8("\xF4\x8F\xBF\xBF"));
}

TEST(IsUtf8, RejectsInvalidText) {
  for (const char* text : {"\x80", "\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                           "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xFF"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace edl
