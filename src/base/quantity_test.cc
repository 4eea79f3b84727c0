#include "base/quantity.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

TEST(Quantity, ReadsEverySpellingOfTheApi) {
  EXPECT_EQ(ParseQuantity("2").value(), 2000);
  EXPECT_EQ(ParseQuantity("250m").value(), 250);
  EXPECT_EQ(ParseQuantity("0.3").value(), 300);
  EXPECT_EQ(ParseQuantity("1e3").value(), 1'000'000);
  EXPECT_EQ(ParseQuantity("1k").value(), 1'000'000);
  EXPECT_EQ(ParseQuantity("16Gi").value(), int64_t{16} * 1024 * 1024 * 1024 * 1000);
  EXPECT_EQ(ParseQuantity("1.5Ki").value(), 1'536'000);
  EXPECT_EQ(ParseQuantity("+1").value(), 1000);
  EXPECT_EQ(ParseQuantity("-1").value(), -1000);
}

TEST(Quantity, RoundsUpAndIsLimited) {
  EXPECT_EQ(ParseQuantity("1n").value(), 1);
  EXPECT_EQ(ParseQuantity("3Ei").value(), int64_t{1} << 53);
  EXPECT_EQ(ParseQuantity("1E").value(), int64_t{1} << 53);
}

TEST(Quantity, RejectsAnythingElse) {
  for (const char* text : {"", "x", "1x", "Gi", "1 Gi", "nan", "inf"}) {
    EXPECT_THAT(ParseQuantity(text), StatusIs(Code::kInvalidArgument)) << text;
  }
}

TEST(Quantity, IsShownInTheLargestUnit) {
  EXPECT_EQ(ShowQuantity(1500, QuantityUnit::kOne), "1.5");
  EXPECT_EQ(ShowQuantity(4000, QuantityUnit::kOne), "4");
  EXPECT_EQ(ShowQuantity(ParseQuantity("4096Mi").value(), QuantityUnit::kByte), "4Gi");
  EXPECT_EQ(ShowQuantity(ParseQuantity("1536Mi").value(), QuantityUnit::kByte), "1.5Gi");
  EXPECT_EQ(ShowQuantity(ParseQuantity("512").value(), QuantityUnit::kByte), "512");
}

TEST(ByteCount, IsAWholeNumberWithAUnit) {
  EXPECT_EQ(ParseByteCount("4096Mi").value(), int64_t{4096} << 20);
  EXPECT_EQ(ParseByteCount("2G").value(), 2'000'000'000);
  EXPECT_EQ(ParseByteCount("1K").value(), 1000);
  EXPECT_EQ(ParseByteCount("7Ei").value(), int64_t{7} << 60);
}

TEST(ByteCount, RejectsAnythingElse) {
  for (const char* text : {"", "1", "0Mi", "01Mi", "-1Mi", "1.5Gi", "1k", "1m", "1n", "Mi", "1MiB",
                           "8Ei", "99999999999999999999M"}) {
    EXPECT_THAT(ParseByteCount(text), StatusIs(Code::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace edl
