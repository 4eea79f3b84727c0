#include "data/snappy_framing.h"

#include <algorithm>
#include <cstdint>

#include <snappy.h>

#include "data/little_endian.h"
#include "data/masked_crc.h"

namespace edl::data {
namespace {

constexpr std::string_view kIdentifier("\xff\x06\x00\x00sNaPpY", 10);
constexpr size_t kFrameHeader = 4;  // type, and length in 3 bytes
constexpr size_t kFrameSum = 4;
constexpr size_t kMostContent = 65536;  // of a frame
constexpr uint8_t kCompressed = 0x00;
constexpr uint8_t kUncompressed = 0x01;
constexpr uint8_t kFirstSkippable = 0x80;
constexpr uint8_t kStreamIdentifier = 0xFF;

void WriteFrameHeader(uint8_t type, size_t length, char* to) {
  Store(static_cast<uint32_t>(type | length << 8), to);
}

void AppendFrame(std::string_view content, ByteBuffer& out) {
  const size_t before = out.size();
  const size_t overhead = kFrameHeader + kFrameSum;
  char* const frame = out.Extend(overhead + snappy::MaxCompressedLength(content.size()));
  size_t length = 0;
  snappy::RawCompress(content.data(), content.size(), frame + overhead, &length);
  uint8_t type = kCompressed;
  // Content that hardly shrinks is stored as it is.
  if (length >= content.size() - content.size() / 8) {
    type = kUncompressed;
    length = content.size();
    std::memcpy(frame + overhead, content.data(), length);
  }
  WriteFrameHeader(type, kFrameSum + length, frame);
  Store(MaskedCrc(content), frame + kFrameHeader);
  out.Truncate(before + overhead + length);
}

// Appends the content of a frame. `body` begins with the checksum.
Status AppendContent(uint8_t type, std::string_view body, ByteBuffer& out) {
  if (body.size() < kFrameSum) return DataLoss("damaged snappy data: a frame is too short");
  const std::string_view stored = body.substr(kFrameSum);
  size_t length = stored.size();
  if (type == kCompressed &&
      !snappy::GetUncompressedLength(stored.data(), stored.size(), &length)) {
    return DataLoss("damaged snappy data: a frame without a length");
  }
  if (length > kMostContent) {
    return DataLoss("damaged snappy data: a frame of {} bytes, at most {}", length, kMostContent);
  }
  if (type == kUncompressed) {
    out.Append(stored);
  } else if (char* const to = out.Extend(length);
             !snappy::RawUncompress(stored.data(), stored.size(), to)) {
    return DataLoss("damaged snappy data");
  }
  const std::string_view content = out.view().substr(out.size() - length);
  if (MaskedCrc(content) != Load<uint32_t>(body.data())) {
    return DataLoss("damaged snappy data: wrong checksum of a frame");
  }
  return Ok();
}

}  // namespace

void SnappyFramedCompress(std::string_view bytes, ByteBuffer& out) {
  out.Append(kIdentifier);
  while (!bytes.empty()) {
    AppendFrame(bytes.substr(0, kMostContent), out);
    bytes.remove_prefix(std::min(bytes.size(), kMostContent));
  }
}

Status SnappyFramedDecompress(std::string_view bytes, size_t most, ByteBuffer& out) {
  const size_t before = out.size();
  if (!bytes.empty() && !bytes.starts_with(kIdentifier)) {
    return DataLoss("damaged snappy data: the stream identifier is missing");
  }
  while (!bytes.empty()) {
    if (bytes.size() < kFrameHeader) return DataLoss("damaged snappy data: it ends in a frame");
    const auto header = Load<uint32_t>(bytes.data());
    const auto type = static_cast<uint8_t>(header);
    const size_t length = header >> 8;
    bytes.remove_prefix(kFrameHeader);
    if (length > bytes.size()) return DataLoss("damaged snappy data: it ends in a frame");
    const std::string_view body = bytes.substr(0, length);
    bytes.remove_prefix(length);
    if (type == kStreamIdentifier) {
      if (body != kIdentifier.substr(kFrameHeader)) {
        return DataLoss("damaged snappy data: a wrong stream identifier");
      }
    } else if (type == kCompressed || type == kUncompressed) {
      EDL_RETURN_IF_ERROR(AppendContent(type, body, out));
      if (out.size() - before > most) {
        return ResourceExhausted("snappy data of more than {} bytes", most);
      }
    } else if (type < kFirstSkippable) {
      return DataLoss("damaged snappy data: a frame of the unknown type {:#04x}", type);
    }
  }
  return Ok();
}

Status SnappyBlockDecompress(std::string_view bytes, size_t most, ByteBuffer& out) {
  size_t length = 0;
  if (!snappy::GetUncompressedLength(bytes.data(), bytes.size(), &length)) {
    return DataLoss("damaged snappy data: a block without a length");
  }
  // Three bytes stand for at most 64, so a longer length is wrong, and is not allocated.
  constexpr size_t kMostRatio = 22;
  if (length > most) return ResourceExhausted("snappy data of more than {} bytes", most);
  if (length / kMostRatio > bytes.size()) {
    return DataLoss("damaged snappy data: {} bytes cannot contain {}", bytes.size(), length);
  }
  if (!snappy::RawUncompress(bytes.data(), bytes.size(), out.Extend(length))) {
    return DataLoss("damaged snappy data");
  }
  return Ok();
}

}  // namespace edl::data
