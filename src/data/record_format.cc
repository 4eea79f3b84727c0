#include "data/record_format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/little_endian.h"
#include "data/recordio_chunk.h"
#include "data/tfrecord_file.h"

namespace edl::data {
namespace {

constexpr std::array<std::pair<std::string_view, RecordFormat>, 5> kFormatNames = {{
    {"recordio", RecordFormat::kRecordIo},
    {"tfrecord", RecordFormat::kTfRecord},
    {"csv", RecordFormat::kCsv},
    {"tsv", RecordFormat::kTsv},
    {"npy", RecordFormat::kNpy},
}};

constexpr std::array<std::pair<std::string_view, RecordFormat>, 6> kSuffixes = {{
    {".recordio", RecordFormat::kRecordIo},
    {".tfrecord", RecordFormat::kTfRecord},
    {".tfrecords", RecordFormat::kTfRecord},
    {".csv", RecordFormat::kCsv},
    {".tsv", RecordFormat::kTsv},
    {".npy", RecordFormat::kNpy},
}};

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kGzipMagic = "\x1f\x8b\x08";

}  // namespace

std::string_view NameOf(RecordFormat format) {
  for (const auto& [name, known] : kFormatNames) {
    if (known == format) return name;
  }
  return "unknown";
}

Result<RecordFormat> ParseRecordFormat(std::string_view name) {
  for (const auto& [known, format] : kFormatNames) {
    if (known == name) return format;
  }
  return InvalidArgument(
      "'{}' is not a format of record files; use recordio, tfrecord, csv, tsv or npy", name);
}

Result<RecordFormat> DetectFormat(const InputFile& file) {
  std::array<char, 32> first{};
  const size_t bytes = std::min<uint64_t>(first.size(), file.size());
  EDL_RETURN_IF_ERROR(file.ReadAt(0, first.data(), bytes));
  const std::string_view begin(first.data(), bytes);
  if (begin.starts_with(kGzipMagic)) {
    return Unimplemented(
        "{} is compressed with gzip as a whole, so a range of it cannot be read; decompress it "
        "with: gunzip",
        file.path());
  }
  if (begin.starts_with(kNpyMagic)) return RecordFormat::kNpy;
  // Before RecordIO: the checksum decides for a record of 0x01020304 bytes.
  if (IsTfRecordHeader(begin)) return RecordFormat::kTfRecord;
  if (bytes >= sizeof(uint32_t) && Load<uint32_t>(begin.data()) == kRecordIoMagic) {
    return RecordFormat::kRecordIo;
  }
  for (const auto& [suffix, format] : kSuffixes) {
    if (file.path().ends_with(suffix)) return format;
  }
  if (bytes == 0) return RecordFormat::kRecordIo;
  return InvalidArgument(
      "{} is not a RecordIO, TFRecord or NumPy file, and its name ends in none of .csv, .tsv, "
      ".npy, .tfrecord and .tfrecords; give its format",
      file.path());
}

}  // namespace edl::data
