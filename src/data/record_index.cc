#include "data/record_index.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/text.h"

namespace edl::data {
namespace {

constexpr std::array<char, 8> kIndexMagic = {'E', 'D', 'L', 'I', 'D', 'X', '0', '1'};

// The layout in the file. Entries follow.
struct IndexHeader {
  std::array<char, 8> magic = kIndexMagic;
  uint32_t checksum = 0;  // CRC-32C of all that follows
  uint32_t format = 0;
  uint32_t has_header = 0;
  uint32_t zero = 0;
  uint64_t file_bytes = 0;
  int64_t modified_ns = 0;
  uint64_t records = 0;
  uint64_t entries = 0;
};
static_assert(sizeof(IndexHeader) == 56);
static_assert(sizeof(RecordIndex::Entry) == 16);

constexpr size_t kUnsummed = offsetof(IndexHeader, format);

IndexHeader HeaderOf(const IndexKey& key) {
  return {.format = static_cast<uint32_t>(key.format),
          .has_header = key.has_header ? 1U : 0U,
          .file_bytes = key.stamp.size,
          .modified_ns = key.stamp.modified_ns};
}

// Offsets are within the file, and both columns rise.
bool IsOrdered(const RecordIndex& index, uint64_t file_bytes) {
  if (index.entries.empty()) return index.count == 0;
  if (index.entries.front().record != 0) return false;
  const auto wrong = std::adjacent_find(
      index.entries.begin(), index.entries.end(),
      [](const auto& a, const auto& b) { return a.record >= b.record || a.offset >= b.offset; });
  return wrong == index.entries.end() && index.entries.back().record < index.count &&
         index.entries.back().offset < file_bytes;
}

}  // namespace

RecordIndex::Entry RecordIndex::Before(uint64_t record) const {
  CHECK(!entries.empty() && entries.front().record <= record, "record {} of {}", record, count);
  const auto behind =
      std::upper_bound(entries.begin(), entries.end(), record,
                       [](uint64_t wanted, const Entry& entry) { return wanted < entry.record; });
  return *(behind - 1);
}

std::string EncodeIndex(const RecordIndex& index, const IndexKey& key) {
  IndexHeader header = HeaderOf(key);
  header.records = index.count;
  header.entries = index.entries.size();
  const size_t entry_bytes = index.entries.size() * sizeof(RecordIndex::Entry);
  std::string bytes(sizeof(header) + entry_bytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (entry_bytes > 0) {
    std::memcpy(bytes.data() + sizeof(header), index.entries.data(), entry_bytes);
  }
  header.checksum = Crc32c(AsBytes(std::string_view(bytes).substr(kUnsummed)));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

Result<RecordIndex> DecodeIndex(std::string_view bytes, const IndexKey& key) {
  IndexHeader header;
  if (bytes.size() < sizeof(header)) return DataLoss("an index of {} bytes", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string_view entries = bytes.substr(sizeof(header));
  if (header.magic != kIndexMagic || header.checksum != Crc32c(AsBytes(bytes.substr(kUnsummed))) ||
      entries.size() % sizeof(RecordIndex::Entry) != 0 ||
      header.entries != entries.size() / sizeof(RecordIndex::Entry)) {
    return DataLoss("not an index, or a damaged one");
  }
  const IndexHeader expected = HeaderOf(key);
  if (header.format != expected.format || header.has_header != expected.has_header ||
      header.file_bytes != expected.file_bytes || header.modified_ns != expected.modified_ns) {
    return FailedPrecondition("the index of another version of the file");
  }
  RecordIndex index{.count = header.records};
  index.entries.resize(entries.size() / sizeof(RecordIndex::Entry));
  if (!entries.empty()) std::memcpy(index.entries.data(), entries.data(), entries.size());
  if (!IsOrdered(index, header.file_bytes)) return DataLoss("an index with wrong entries");
  return index;
}

}  // namespace edl::data
