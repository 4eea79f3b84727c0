#include "base/crc32c.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace edl {
namespace {

TEST(Crc32c, GivesThePublishedSums) {
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32)), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43U);
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(kDigits))), 0xE3069283U);
  EXPECT_EQ(Crc32c({}), 0U);
}

TEST(Crc32c, OfPiecesIsThatOfTheWhole) {
  std::vector<std::byte> bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::span whole(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(Crc32c(whole.subspan(cut), Crc32c(whole.first(cut))), Crc32c(whole)) << cut;
  }
}

}  // namespace
}  // namespace edl
