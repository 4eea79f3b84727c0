#include "kube/quantity.h"

#include <gtest/gtest.h>

namespace edl::kube {
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

TEST(Quantity, RoundsUpAndStopsAtTheTop) {
  EXPECT_EQ(ParseQuantity("1n").value(), 1);
  EXPECT_EQ(ParseQuantity("3Ei").value(), int64_t{1} << 53);
  EXPECT_EQ(ParseQuantity("1E").value(), int64_t{1} << 53);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "1x", "Gi", "1 Gi", "nan", "inf"}) {
    EXPECT_EQ(ParseQuantity(text).status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(Quantity, IsShownInTheLargestUnit) {
  EXPECT_EQ(ShowQuantity(1500, Unit::kOne), "1.5");
  EXPECT_EQ(ShowQuantity(4000, Unit::kOne), "4");
  EXPECT_EQ(ShowQuantity(ParseQuantity("4096Mi").value(), Unit::kByte), "4Gi");
  EXPECT_EQ(ShowQuantity(ParseQuantity("1536Mi").value(), Unit::kByte), "1.5Gi");
  EXPECT_EQ(ShowQuantity(ParseQuantity("512").value(), Unit::kByte), "512");
}

}  // namespace
}  // namespace edl::kube
