#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/input_file.h"
#include "data/record_format.h"

namespace edl::data {

// Where records begin in a file: the count of records, and the offset of the first record (for
// RecordIO, of its chunk) after each piece of about kSpacing bytes. Immutable after it was built.
struct RecordIndex {
  static constexpr uint64_t kSpacing = uint64_t{256} << 10;

  struct Entry {
    uint64_t record = 0;
    uint64_t offset = 0;

    bool operator==(const Entry&) const = default;
  };

  uint64_t count = 0;
  std::vector<Entry> entries;  // in order; the first is that of record 0

  bool operator==(const RecordIndex&) const = default;

  // Notes that `record` begins at `offset`. Called for all records (or chunks) in order.
  void Add(uint64_t record, uint64_t offset) {
    if (entries.empty() || offset - entries.back().offset >= kSpacing) {
      entries.push_back({.record = record, .offset = offset});
    }
  }

  // The last entry that is not behind `record`. REQUIRES: there is an entry.
  Entry Before(uint64_t record) const;
};

// An index is valid for these.
struct IndexKey {
  RecordFormat format = RecordFormat::kRecordIo;
  bool has_header = false;
  FileStamp stamp;

  bool operator==(const IndexKey&) const = default;
};

// An index file, docs/formats/records.md.
std::string EncodeIndex(const RecordIndex& index, const IndexKey& key);
// DataLoss: the bytes are not an index, or damaged. FailedPrecondition: an index with another key.
Result<RecordIndex> DecodeIndex(std::string_view bytes, const IndexKey& key);

}  // namespace edl::data
