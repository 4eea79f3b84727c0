#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "data/byte_buffer.h"

namespace edl::data {

inline constexpr uint32_t kRecordIoMagic = 0x01020304;

// Two packages write RecordIO with the same magic number, docs/formats/records.md.
enum class RecordIoLayout {
  kGo,      // of the Go library: CRC-32, framed snappy
  kPython,  // of the older Python package: CRC-32C, a block of snappy
};

enum class Compression { kNone, kSnappy, kGzip };

// A chunk of a RecordIO file: this header, then the payload, which is compressed.
struct RecordIoHeader {
  static constexpr size_t kBytes = 20;

  uint32_t checksum = 0;  // of the payload as it is in the file
  Compression compression = Compression::kNone;
  uint32_t payload_bytes = 0;  // as it is in the file
  uint32_t records = 0;

  bool operator==(const RecordIoHeader&) const = default;
};

// A reader refuses larger payloads, counted after they are decompressed. The Go library writes
// 32 MiB of records at most, with 4 bytes for the length of each.
inline constexpr size_t kMostPayloadBytes = size_t{1} << 30;

// DataLoss: the bytes are not a header. REQUIRES: RecordIoHeader::kBytes bytes.
Result<RecordIoHeader> ParseRecordIoHeader(std::string_view bytes, RecordIoLayout layout);

// Writes a header in the Go library's layout to `to`.
void WriteRecordIoHeader(const RecordIoHeader& header, char* to);

uint32_t RecordIoChecksum(std::string_view payload, RecordIoLayout layout);

// Checks the payload of a chunk, and replaces the content of `out` by the decompressed payload:
// records, each after its length (uint32). DataLoss: it is damaged. ResourceExhausted: it is too
// large.
Status DecodePayload(const RecordIoHeader& header, RecordIoLayout layout, std::string_view payload,
                     ByteBuffer& out);

}  // namespace edl::data
