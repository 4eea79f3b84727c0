// The input is a RecordIO file. After a first byte of 0 to 5, the rest is the payload of one chunk,
// as it is in the file: the header gets the compressor of that number (of the Go library, then of
// the older Python package) and the right checksum.

#include <array>
#include <cstring>
#include <string>

#include "data/recordio_chunk.h"
#include "data/testing/read_as_records.h"

namespace {

using edl::data::RecordIoLayout;

std::string ChunkOf(uint8_t kind, std::string_view payload) {
  constexpr uint8_t kCompressors = 3;
  const bool go = kind < kCompressors;
  const uint32_t sum =
      edl::data::RecordIoChecksum(payload, go ? RecordIoLayout::kGo : RecordIoLayout::kPython);
  const uint32_t records = payload.empty() ? 0 : static_cast<uint8_t>(payload.back());
  const auto size = static_cast<uint32_t>(payload.size());
  const std::array<uint32_t, 5> words =
      go ? std::array<uint32_t, 5>{edl::data::kRecordIoMagic, sum, kind, size, records}
         : std::array<uint32_t, 5>{edl::data::kRecordIoMagic, records, sum,
                                   kind - kCompressors + 1U, size};
  std::string chunk(sizeof(words), '\0');
  std::memcpy(chunk.data(), words.data(), sizeof(words));
  chunk += payload;
  return chunk;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr uint8_t kKinds = 6;
  const bool is_payload = size > 0 && data[0] < kKinds && !bytes.starts_with("\x04\x03\x02\x01");
  edl::data::ReadAsRecords(is_payload ? ChunkOf(data[0], bytes.substr(1)) : std::string(bytes),
                           edl::data::RecordFormat::kRecordIo);
  return 0;
}
