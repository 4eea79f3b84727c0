// The input is a stream of frames. The reader accepts or rejects each frame and uses no more memory
// than the limits. The frames do not depend on how the stream is split, and each header is encoded
// to the same bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "wire/frame_reader.h"

namespace {

constexpr edl::wire::FrameLimits kLimits{.body_bytes = 1 << 16, .meta_bytes = 1 << 10};

std::vector<edl::wire::Frame> Read(std::span<const std::byte> stream, size_t most) {
  edl::wire::FrameReader reader(kLimits);
  std::vector<edl::wire::Frame> frames;
  while (!stream.empty()) {
    const std::span<std::byte> room = reader.Room();
    const size_t size = std::min({room.size(), stream.size(), most});
    std::memcpy(room.data(), stream.data(), size);
    stream = stream.subspan(size);
    if (!reader.Add(size).ok()) break;
    while (auto frame = reader.Next()) frames.push_back(std::move(*frame));
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span stream(reinterpret_cast<const std::byte*>(data), size);
  const auto whole = Read(stream, size);
  const auto cut = Read(stream, 5);
  CHECK(whole.size() == cut.size(), "{} frames from the whole stream, {} from the split stream",
        whole.size(), cut.size());
  size_t at = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(whole[i].header == cut[i].header, "header of frame {} differs when the stream is split",
          i);
    CHECK(std::ranges::equal(whole[i].body.bytes(), cut[i].body.bytes()),
          "body of frame {} differs when the stream is split", i);
    CHECK(whole[i].meta().size() + whole[i].tensors().size() <= whole[i].body.size(),
          "meta and tensors are longer than the body");
    const auto header = edl::wire::EncodeHeader(whole[i].header);
    CHECK(std::ranges::equal(header, stream.subspan(at, header.size())),
          "header {} is encoded to other bytes", i);
    at += header.size() + whole[i].body.size();
  }
  return 0;
}
