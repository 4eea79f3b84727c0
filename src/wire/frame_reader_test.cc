#include "wire/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::wire {
namespace {

using Bytes = std::vector<std::byte>;

void AppendFrame(Bytes& stream, uint64_t request, size_t body_bytes) {
  const auto header = EncodeHeader({.type = 1, .request = request, .body_bytes = body_bytes});
  stream.insert(stream.end(), header.begin(), header.end());
  stream.insert(stream.end(), body_bytes, std::byte(request));
}

// Gives the reader `stream` in pieces of at most `most` bytes; the frames that came of it.
Result<std::vector<Frame>> ReadAll(FrameReader& reader, std::span<const std::byte> stream,
                                   size_t most) {
  std::vector<Frame> frames;
  while (!stream.empty()) {
    const std::span<std::byte> room = reader.Room();
    const size_t size = std::min({room.size(), stream.size(), most});
    std::memcpy(room.data(), stream.data(), size);
    stream = stream.subspan(size);
    EDL_RETURN_IF_ERROR(reader.Add(size));
    while (std::optional<Frame> frame = reader.Next()) frames.push_back(std::move(*frame));
  }
  return frames;
}

TEST(FrameReader, PutsFramesTogetherHoweverTheyAreCut) {
  Bytes stream;
  const std::vector<size_t> sizes = {0, 1, 1000, 0, 64, 33};
  for (size_t i = 0; i < sizes.size(); ++i) AppendFrame(stream, i, sizes[i]);
  for (size_t most = 1; most < stream.size(); most = most * 3 / 2 + 1) {
    FrameReader reader;
    const auto frames = ReadAll(reader, stream, most);
    ASSERT_OK(frames);
    ASSERT_EQ(frames->size(), sizes.size()) << "pieces of " << most;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Frame& frame = (*frames)[i];
      EXPECT_EQ(frame.header.request, i);
      EXPECT_EQ(frame.body.size(), sizes[i]);
      EXPECT_TRUE(std::all_of(frame.body.bytes().begin(), frame.body.bytes().end(),
                              [&](std::byte byte) { return byte == std::byte(i); }));
    }
    EXPECT_TRUE(reader.IsBetweenFrames());
  }
}

TEST(FrameReader, ReportsATruncatedFrame) {
  Bytes stream;
  AppendFrame(stream, 1, 10);
  for (size_t size = 1; size < stream.size(); ++size) {
    FrameReader reader;
    const auto frames = ReadAll(reader, std::span(stream).first(size), 7);
    ASSERT_OK(frames);
    EXPECT_TRUE(frames->empty());
    EXPECT_FALSE(reader.IsBetweenFrames()) << size;
  }
}

TEST(FrameReader, RefusesWhatIsNoFrame) {
  FrameReader reader;
  EXPECT_THAT(ReadAll(reader, Bytes(64, std::byte{'x'}), 64), StatusIs(Code::kInvalidArgument));
}

TEST(FrameReader, AllocatesNoMoreThanItsLimits) {
  Bytes stream;
  AppendFrame(stream, 1, 101);
  FrameReader reader({.body_bytes = 100});
  EXPECT_THAT(ReadAll(reader, stream, 64), StatusIs(Code::kResourceExhausted));
}

}  // namespace
}  // namespace edl::wire
