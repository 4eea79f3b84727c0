#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/byte_buffer.h"
#include "data/output_file.h"
#include "data/record_format.h"
#include "data/recordio_chunk.h"

namespace edl::data {

struct RecordWriterOptions {
  RecordFormat format = RecordFormat::kRecordIo;  // or kTfRecord
  // The rest is for RecordIO; the values are those of the Go library.
  Compression compression = Compression::kSnappy;
  uint64_t max_chunk_bytes = uint64_t{32} << 20;  // of the records of a chunk
  uint64_t records_per_chunk = 0;                 // 0: no limit
};

// "none", "snappy" or "gzip". InvalidArgument: the name of no compression; the message lists them.
Result<Compression> ParseCompression(std::string_view name);

// Writes a file of records. The file gets its name in Close(), so readers see all records or none.
//
// Confined.
class RecordWriter {
 public:
  // InvalidArgument: the format cannot be written, or the limits are wrong. Fails like
  // OutputFile::Create.
  static Result<std::unique_ptr<RecordWriter>> Create(std::string path,
                                                      const RecordWriterOptions& options);
  virtual ~RecordWriter() = default;

  // InvalidArgument: the record is too large for the format. FailedPrecondition: the writer was
  // closed. After any other failure the file cannot be completed.
  Status Write(std::string_view record);
  // Completes the file. Without it, the destructor removes what was written. The second call does
  // nothing.
  Status Close();

 protected:
  explicit RecordWriter(OutputFile file) : file_(std::move(file)) {}

  virtual Status Append(std::string_view record) = 0;
  // Writes what is still in memory.
  virtual Status Finish() = 0;
  OutputFile& file() { return file_; }

 private:
  OutputFile file_;
  bool closed_ = false;
  Status failure_;  // of an earlier call
};

}  // namespace edl::data
