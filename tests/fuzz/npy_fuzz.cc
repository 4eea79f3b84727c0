// The input is a .npy file. After a first byte of '{', it is the dictionary of a header of version
// 1, and 64 bytes follow it.

#include <string>

#include "data/little_endian.h"
#include "data/testing/read_as_records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string file(bytes);
  if (bytes.starts_with('{') && size <= UINT16_MAX) {
    file = std::string("\x93NUMPY\x01\x00\x00\x00", 10);
    edl::data::Store(static_cast<uint16_t>(size), file.data() + 8);
    file += bytes;
    file.append(64, 'x');
  }
  edl::data::ReadAsRecords(file, edl::data::RecordFormat::kNpy);
  return 0;
}
