#include "base/base64.h"

#include <string>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

TEST(Base64, EncodesTheExamplesOfTheRfc) {
  const std::pair<std::string, std::string> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    const auto decoded = DecodeBase64(text);
    ASSERT_OK(decoded) << text;
    EXPECT_EQ(*decoded, bytes);
  }
}

TEST(Base64, RoundTripsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  EXPECT_EQ(*DecodeBase64(EncodeBase64(bytes)), bytes);
}

TEST(Base64, IgnoresWhiteSpace) { EXPECT_EQ(*DecodeBase64("Zm9v\r\n YmFy\n"), "foobar"); }

TEST(Base64, RejectsInvalidText) {
  for (const char* text : {"Zg", "Zg=", "Z", "Zm9v!", "Zg==Zg==", "====", "Zm9v\xff", "Z-__"}) {
    EXPECT_THAT(DecodeBase64(text), ::testing::Not(IsOk())) << text;
  }
}

}  // namespace
}  // namespace edl
