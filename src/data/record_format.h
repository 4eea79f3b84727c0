#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "data/input_file.h"

namespace edl::data {

// The numbers are part of index files.
enum class RecordFormat : uint32_t {
  kRecordIo = 1,
  kTfRecord = 2,
  kCsv = 3,
  kTsv = 4,
  kNpy = 5,
};

// "recordio", "tfrecord", "csv", "tsv" or "npy".
std::string_view NameOf(RecordFormat format);
// InvalidArgument: the name of no format; the message lists them.
Result<RecordFormat> ParseRecordFormat(std::string_view name);

// The format of a file by its first bytes and the suffix of its name. An empty file with an unknown
// suffix is RecordIO without records. InvalidArgument: the file has no known format. Unimplemented:
// it is compressed as a whole.
Result<RecordFormat> DetectFormat(const InputFile& file);

}  // namespace edl::data
