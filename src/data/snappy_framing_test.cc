#include "data/snappy_framing.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "data/gzip.h"
#include "data/testing/record_files.h"

namespace edl::data {
namespace {

using testing::HasSubstr;

constexpr size_t kMost = size_t{1} << 20;

std::string Framed(std::string_view content) {
  ByteBuffer out;
  SnappyFramedCompress(content, out);
  return std::string(out.view());
}

Result<std::string> Unframed(std::string_view bytes, size_t most = kMost) {
  ByteBuffer out;
  EDL_RETURN_IF_ERROR(SnappyFramedDecompress(bytes, most, out));
  return std::string(out.view());
}

TEST(SnappyFraming, ReadsAFrameOfTheSpecification) {
  // An uncompressed frame, as Go's snappy.Writer writes "abcd".
  const std::string frame = FromHex("ff060000734e61507059010800006810e6b661626364");

  EXPECT_EQ(Framed("abcd"), frame);
  EXPECT_THAT(Unframed(frame), IsOkAndHolds("abcd"));
}

TEST(SnappyFraming, GivesBackTheContent) {
  std::string long_content(200'000, 'x');
  long_content += "end";

  EXPECT_THAT(Unframed(Framed("")), IsOkAndHolds(""));
  EXPECT_THAT(Unframed(Framed(long_content)), IsOkAndHolds(long_content));
  EXPECT_LT(Framed(long_content).size(), long_content.size() / 10);
}

TEST(SnappyFraming, SkipsPaddingAndRejectsUnknownFrames) {
  const std::string frames = Framed("abcd");

  EXPECT_THAT(Unframed(frames + std::string("\xfe\x02\x00\x00zz", 6)), IsOkAndHolds("abcd"));
  EXPECT_THAT(Unframed(frames + std::string("\x02\x02\x00\x00zz", 6)),
              StatusIs(Code::kDataLoss, HasSubstr("0x02")));
}

TEST(SnappyFraming, DetectsDamage) {
  const std::string content(1000, 'x');
  const std::string frames = Framed(content);
  for (size_t size = 1; size < frames.size(); ++size) {
    const auto cut = Unframed(frames.substr(0, size));
    EXPECT_TRUE(!cut.ok() || cut->empty()) << size;
  }
  for (size_t at = 0; at < frames.size(); ++at) {
    std::string damaged = frames;
    damaged[at] ^= 1;
    const auto read = Unframed(damaged);
    // The offset of a copy within equal bytes does not matter.
    EXPECT_TRUE(read.ok() ? *read == content : read.status().code() == Code::kDataLoss) << at;
  }
}

TEST(SnappyFraming, LimitsTheContent) {
  EXPECT_THAT(Unframed(Framed(std::string(100'000, 'x')), 99'999),
              StatusIs(Code::kResourceExhausted, HasSubstr("99999")));
}

TEST(SnappyBlock, AnImpossibleLengthIsNotAllocated) {
  ByteBuffer out;

  EXPECT_THAT(SnappyBlockDecompress("\x80\x80\x80\x20"
                                    "x",
                                    size_t{1} << 30, out),
              StatusIs(Code::kDataLoss, HasSubstr("cannot contain")));
  EXPECT_EQ(out.size(), 0U);
}

TEST(Gzip, GivesBackTheContentAndLimitsIt) {
  const std::string content(300'000, 'x');
  ByteBuffer packed;
  GzipCompress(content, packed);
  ByteBuffer out;

  ASSERT_OK(GzipDecompress(packed.view(), content.size(), out));
  EXPECT_EQ(out.view(), content);
  EXPECT_THAT(GzipDecompress(packed.view(), content.size() - 1, out),
              StatusIs(Code::kResourceExhausted));
  EXPECT_THAT(GzipDecompress(packed.view().substr(0, packed.size() - 1), kMost, out),
              StatusIs(Code::kDataLoss));
  EXPECT_THAT(GzipDecompress("", kMost, out), StatusIs(Code::kDataLoss));
}

TEST(Gzip, ReadsSeveralMembers) {
  ByteBuffer packed;
  GzipCompress("one ", packed);
  GzipCompress("two", packed);
  ByteBuffer out;

  ASSERT_OK(GzipDecompress(packed.view(), kMost, out));
  EXPECT_EQ(out.view(), "one two");
}

}  // namespace
}  // namespace edl::data
