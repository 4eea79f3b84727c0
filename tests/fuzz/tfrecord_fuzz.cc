// The input is a TFRecord file. After a first byte of '\n', the rest is lengths and records, whose
// checksums are added: a length of 2 bytes, then so many bytes.

#include <algorithm>
#include <string>

#include "data/little_endian.h"
#include "data/masked_crc.h"
#include "data/testing/read_as_records.h"

namespace {

using edl::data::MaskedCrc;

template <typename Number>
std::string BytesOf(Number number) {
  std::string bytes(sizeof(number), '\0');
  edl::data::Store(number, bytes.data());
  return bytes;
}

std::string FileOf(std::string_view rest) {
  std::string file;
  while (rest.size() >= sizeof(uint16_t)) {
    const auto wanted = edl::data::Load<uint16_t>(rest.data());
    rest.remove_prefix(sizeof(uint16_t));
    const std::string_view record = rest.substr(0, wanted);
    rest.remove_prefix(record.size());
    const std::string length = BytesOf(uint64_t{wanted});
    file += length;
    file += BytesOf(MaskedCrc(length));
    file += record;
    file += BytesOf(MaskedCrc(record));
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  edl::data::ReadAsRecords(
      size > 0 && data[0] == '\n' ? FileOf(bytes.substr(1)) : std::string(bytes),
      edl::data::RecordFormat::kTfRecord);
  return 0;
}
