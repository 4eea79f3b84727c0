#pragma once

#include <cstddef>
#include <string_view>

#include "data/file_scanner.h"
#include "data/record_file.h"

namespace edl::data {

// Around each record of TFRecord: its length (uint64) with a checksum, then the record, then the
// checksum of the record.
inline constexpr size_t kTfRecordHeader = 12;
inline constexpr size_t kTfRecordFooter = 4;

// Whether `bytes` begin with a length and its checksum.
bool IsTfRecordHeader(std::string_view bytes);

// A TFRecord file without compression.
class TfRecordFile final : public RecordFile {
 public:
  explicit TfRecordFile(InputFile input)
      : RecordFile(std::move(input), RecordFormat::kTfRecord), scanner_(this->input()) {}

 protected:
  Result<RecordIndex> Scan() override;
  Status ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                  RecordBatch& out) override;

 private:
  // Parses the header at the position of the scanner. Returns the length of the record, which is
  // within the file.
  Result<uint64_t> NextLength();

  FileScanner scanner_;
  // Where the last read ended, so that the next range needs no search.
  RecordIndex::Entry next_;
};

}  // namespace edl::data
