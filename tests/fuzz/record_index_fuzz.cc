// The input is an index file: its format, size, time and, in a second try, its checksum are taken
// from the input. An index that is accepted is written as the same bytes, and finds entries.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "data/little_endian.h"
#include "data/record_index.h"

namespace {

using edl::data::IndexKey;
using edl::data::Load;

constexpr size_t kHeader = 56;
constexpr size_t kSummedFrom = 12;

void Decode(std::string_view bytes) {
  IndexKey key;
  if (bytes.size() >= kHeader) {
    key = {.format = static_cast<edl::data::RecordFormat>(Load<uint32_t>(bytes.data() + 12)),
           .has_header = Load<uint32_t>(bytes.data() + 16) == 1,
           .stamp = {.size = Load<uint64_t>(bytes.data() + 24),
                     .modified_ns = Load<int64_t>(bytes.data() + 32)}};
  }
  const auto index = edl::data::DecodeIndex(bytes, key);
  if (!index.ok()) {
    CHECK(!index.status().message().empty(), "an error without a message");
    return;
  }
  const auto again = edl::data::DecodeIndex(edl::data::EncodeIndex(*index, key), key);
  CHECK(again.ok() && *again == *index, "another index the second time");
  for (const uint64_t record : {uint64_t{0}, index->count / 2, index->count - 1}) {
    if (index->count == 0) break;
    const auto entry = index->Before(record);
    CHECK(entry.record <= record && entry.offset < key.stamp.size, "entry at {}", entry.offset);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Decode(bytes);
  if (size >= kHeader) {
    const std::string_view summed = std::string_view(bytes).substr(kSummedFrom);
    edl::data::Store(edl::Crc32c(edl::AsBytes(summed)), bytes.data() + 8);
    Decode(bytes);
  }
  return 0;
}
