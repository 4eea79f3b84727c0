#include "data/recordio_chunk.h"

#include <array>

#include <zlib.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "data/gzip.h"
#include "data/little_endian.h"
#include "data/snappy_framing.h"

namespace edl::data {
namespace {

constexpr size_t kWord = sizeof(uint32_t);

uint32_t WordOf(std::string_view bytes, size_t index) {
  return Load<uint32_t>(bytes.data() + index * kWord);
}

}  // namespace

Result<RecordIoHeader> ParseRecordIoHeader(std::string_view bytes, RecordIoLayout layout) {
  CHECK(bytes.size() >= RecordIoHeader::kBytes, "{} bytes", bytes.size());
  if (WordOf(bytes, 0) != kRecordIoMagic) {
    return DataLoss("a chunk of RecordIO does not begin here: the magic number is {:#010x}",
                    WordOf(bytes, 0));
  }
  const bool go = layout == RecordIoLayout::kGo;
  // The Python package counts compressors from 1.
  const uint32_t compressor = go ? WordOf(bytes, 2) : WordOf(bytes, 3) - 1;
  if (compressor > static_cast<uint32_t>(Compression::kGzip)) {
    return DataLoss("a chunk of RecordIO has the unknown compressor {}", WordOf(bytes, go ? 2 : 3));
  }
  const RecordIoHeader header{.checksum = WordOf(bytes, go ? 1 : 2),
                              .compression = static_cast<Compression>(compressor),
                              .payload_bytes = WordOf(bytes, go ? 3 : 4),
                              .records = WordOf(bytes, go ? 4 : 1)};
  const size_t most =
      header.compression == Compression::kNone ? header.payload_bytes : kMostPayloadBytes;
  if (header.payload_bytes > kMostPayloadBytes || header.records > most / kWord) {
    return DataLoss("a chunk of RecordIO cannot have {} records in {} bytes", header.records,
                    header.payload_bytes);
  }
  return header;
}

void WriteRecordIoHeader(const RecordIoHeader& header, char* to) {
  const std::array<uint32_t, 5> words = {kRecordIoMagic, header.checksum,
                                         static_cast<uint32_t>(header.compression),
                                         header.payload_bytes, header.records};
  static_assert(sizeof(words) == RecordIoHeader::kBytes);
  std::memcpy(to, words.data(), sizeof(words));
}

uint32_t RecordIoChecksum(std::string_view payload, RecordIoLayout layout) {
  if (layout == RecordIoLayout::kPython) return Crc32c(AsBytes(payload));
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(payload.data()), payload.size()));
}

Status DecodePayload(const RecordIoHeader& header, RecordIoLayout layout, std::string_view payload,
                     ByteBuffer& out) {
  const uint32_t checksum = RecordIoChecksum(payload, layout);
  if (checksum != header.checksum) {
    return DataLoss("a damaged chunk of RecordIO: its checksum is {:#010x}, not {:#010x}", checksum,
                    header.checksum);
  }
  out.Clear();
  switch (header.compression) {
    case Compression::kNone:
      out.Append(payload);
      return Ok();
    case Compression::kGzip:
      return GzipDecompress(payload, kMostPayloadBytes, out);
    case Compression::kSnappy:
      return layout == RecordIoLayout::kGo ? SnappyFramedDecompress(payload, kMostPayloadBytes, out)
                                           : SnappyBlockDecompress(payload, kMostPayloadBytes, out);
  }
  return Internal("unknown compression {}", static_cast<int>(header.compression));
}

}  // namespace edl::data
