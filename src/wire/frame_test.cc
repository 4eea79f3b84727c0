#include "wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::wire {
namespace {

using ::testing::HasSubstr;

FrameHeader Header() {
  return {.type = 3, .flags = 0x8001, .request = 1ULL << 63, .body_bytes = 4096, .meta_bytes = 40};
}

TEST(FrameHeader, IsReadAsItWasWritten) {
  const auto bytes = EncodeHeader(Header());
  const auto read = DecodeHeader(bytes, {});
  ASSERT_OK(read);
  EXPECT_EQ(*read, Header());
}

TEST(FrameHeader, HasTheDocumentedLayout) {
  const auto bytes = EncodeHeader(Header());
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), 4), "EPDL");
  EXPECT_EQ(bytes[4], std::byte{3});
  EXPECT_EQ(bytes[5], std::byte{3});
  EXPECT_EQ(bytes[6], std::byte{0x01});
  EXPECT_EQ(bytes[7], std::byte{0x80});
  EXPECT_EQ(bytes[15], std::byte{0x80});
  EXPECT_EQ(bytes[17], std::byte{0x10});
  EXPECT_EQ(bytes[24], std::byte{40});
}

TEST(FrameHeader, IsRefusedWithAnyBitFlipped) {
  const auto good = EncodeHeader(Header());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(DecodeHeader(bad, {}).ok()) << "bit " << bit;
  }
}

TEST(FrameHeader, SaysWhatIsWrong) {
  FrameHeader other = Header();
  other.version = 9;
  EXPECT_THAT(DecodeHeader(EncodeHeader(other), {}), StatusIs(Code::kUnimplemented));
  EXPECT_THAT(DecodeHeader(EncodeHeader(other), {}).status().message(), HasSubstr("version 9"));

  const std::array<std::byte, FrameHeader::kBytes> zeros{};
  EXPECT_THAT(DecodeHeader(zeros, {}).status().message(), HasSubstr("begins with 0x00000000"));

  FrameHeader large = Header();
  large.body_bytes = UINT64_MAX;
  EXPECT_THAT(DecodeHeader(EncodeHeader(large), {}), StatusIs(Code::kResourceExhausted));
  large = Header();
  large.meta_bytes = UINT32_MAX;
  EXPECT_THAT(DecodeHeader(EncodeHeader(large), {}), StatusIs(Code::kResourceExhausted));
  large = Header();
  large.meta_bytes = 5000;
  EXPECT_THAT(DecodeHeader(EncodeHeader(large), {}).status().message(),
              HasSubstr("longer than its body"));
}

TEST(Buffer, IsAlignedForTensors) {
  for (const size_t size : {1, 63, 64, 1000, 1'000'000}) {
    const Buffer buffer(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0U);
    EXPECT_EQ(buffer.size(), size);
  }
  EXPECT_TRUE(Buffer(0).bytes().empty());
}

TEST(Frame, HasItsTensorsAfterThePadding) {
  Frame frame{.header = {.body_bytes = 128, .meta_bytes = 40}, .body = Buffer(128)};
  EXPECT_EQ(frame.meta().size(), 40U);
  EXPECT_EQ(frame.tensors().data(), frame.body.data() + 64);
  EXPECT_EQ(frame.tensors().size(), 64U);
  // Without tensors there may be no padding either.
  frame = {.header = {.body_bytes = 40, .meta_bytes = 40}, .body = Buffer(40)};
  EXPECT_TRUE(frame.tensors().empty());
}

}  // namespace
}  // namespace edl::wire
