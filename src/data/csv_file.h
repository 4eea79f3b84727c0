#pragma once

#include <memory>

#include "data/csv_scanner.h"
#include "data/record_file.h"

namespace edl::data {

// A CSV or TSV file. A record is a line without its line end; empty lines are skipped.
class CsvFile final : public RecordFile {
 public:
  // DataLoss: there is no header, or it is damaged.
  static Result<std::unique_ptr<CsvFile>> Open(InputFile input, RecordFormat format,
                                               bool has_header);

 protected:
  Result<RecordIndex> Scan() override;
  Status ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                  RecordBatch& out) override;

 private:
  CsvFile(InputFile input, RecordFormat format)
      : RecordFile(std::move(input), format),
        scanner_(this->input(), format == RecordFormat::kTsv ? '\t' : ',') {}

  Status SkipByteOrderMark();
  Status ReadHeader(char separator);

  CsvScanner scanner_;
  uint64_t begin_ = 0;  // of the first line with a record
  // Where the last read ended, so that the next range needs no search.
  RecordIndex::Entry next_;
};

}  // namespace edl::data
