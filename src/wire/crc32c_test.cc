#include "wire/crc32c.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace edl::wire {
namespace {

TEST(Crc32c, GivesThePublishedSums) {
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32)), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43U);
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(kDigits))), 0xE3069283U);
  EXPECT_EQ(Crc32c({}), 0U);
}

}  // namespace
}  // namespace edl::wire
