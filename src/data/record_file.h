#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "data/input_file.h"
#include "data/record_batch.h"
#include "data/record_format.h"
#include "data/record_index.h"

namespace edl::data {

// What a file says about its records.
struct RecordSchema {
  std::vector<std::string> column_names;  // CSV with a header
  std::string dtype;                      // NumPy, such as "<f4"
  std::vector<int64_t> record_shape;      // NumPy: without the first axis

  bool operator==(const RecordSchema&) const = default;
};

struct RecordFileOptions {
  std::optional<RecordFormat> format;  // nullopt: by content and name
  bool has_header = false;             // CSV and TSV: the first line has the names of the columns
};

// One file with records. An implementation for each format builds the index and reads ranges.
//
// Thread-safe: one call at a time does its work.
class RecordFile {
 public:
  // Fails like InputFile::Open and DetectFormat. DataLoss: the beginning of the file is damaged.
  static Result<std::unique_ptr<RecordFile>> Open(std::string path,
                                                  const RecordFileOptions& options);
  virtual ~RecordFile() = default;
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  RecordFormat format() const { return format_; }
  const InputFile& input() const { return input_; }
  const RecordSchema& schema() const { return schema_; }

  // Reads as much of the file as is needed to find all records. DataLoss: the file is damaged; the
  // message has the offset. Fails like InputFile::CheckUnchanged.
  Result<RecordIndex> BuildIndex();

  // Adds the records [first, end) to `out`; after a failure `out` has some of them. OutOfRange:
  // `index` has fewer records. Other failures are those of BuildIndex. REQUIRES: `index` is that of
  // this file, and the same in every call.
  Status Read(const RecordIndex& index, uint64_t first, uint64_t end, RecordBatch& out);

 protected:
  RecordFile(InputFile input, RecordFormat format) : input_(std::move(input)), format_(format) {}

  virtual Result<RecordIndex> Scan() = 0;
  // REQUIRES: first < end <= index.count.
  virtual Status ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                          RecordBatch& out) = 0;
  void set_schema(RecordSchema schema) { schema_ = std::move(schema); }

 private:
  const InputFile input_;
  const RecordFormat format_;
  RecordSchema schema_;  // constant after Open
  Mutex mutex_;          // held by Scan and ReadSome
};

}  // namespace edl::data
