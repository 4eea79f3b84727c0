#include "kube/text.h"

#include <gtest/gtest.h>

namespace edl::kube {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(Text, EncodesWhatAUrlCannotHold) {
  EXPECT_EQ(UrlEncoded("a=b,c in (d, e)"), "a%3Db%2Cc%20in%20%28d%2C%20e%29");
  EXPECT_EQ(UrlEncoded("plain-._~9"), "plain-._~9");
  EXPECT_EQ(UrlEncoded("ä/&?"), "%C3%A4%2F%26%3F");
}

TEST(Text, ReadsTheTimesThatServersWrite) {
  const WallTime second(seconds(1794736800));  // 2026-11-15T10:00:00Z
  EXPECT_EQ(ParseTime("2026-11-15T10:00:00Z"), second);
  EXPECT_EQ(ParseTime("2026-11-15T10:00:00.000250Z"), second + microseconds(250));
  EXPECT_EQ(ParseTime("2026-11-15T11:30:00+01:30"), second);
  EXPECT_EQ(ParseTime("2026-11-15T09:00:00.5-01:00"), second + microseconds(500'000));
}

TEST(Text, TakesNothingElseForATime) {
  for (const char* text : {"", "soon", "2026-11-15", "2026-11-15T10:00:00", "2026-11-15T10:00:00X",
                           "2026-11-15T10:00:00+1:00", "2026-11-15T10:00:00+0a:00",
                           "9999-01-01T00:00:00Z", "1234-01-01T00:00:00Z"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

TEST(Text, WritesTimesAsServersReadThem) {
  const WallTime time = WallTime(seconds(1794736800)) + microseconds(42);
  EXPECT_EQ(FormatTime(time), "2026-11-15T10:00:00Z");
  EXPECT_EQ(FormatMicroTime(time), "2026-11-15T10:00:00.000042Z");
  EXPECT_EQ(ParseTime(FormatMicroTime(time)), time);
}

}  // namespace
}  // namespace edl::kube
