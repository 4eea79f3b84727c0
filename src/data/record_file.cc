#include "data/record_file.h"

#include <utility>

#include "data/csv_file.h"
#include "data/npy_file.h"
#include "data/recordio_file.h"
#include "data/tfrecord_file.h"

namespace edl::data {
namespace {

template <typename File>
Result<std::unique_ptr<RecordFile>> AsRecordFile(Result<std::unique_ptr<File>> file) {
  if (!file.ok()) return file.status();
  return std::unique_ptr<RecordFile>(*std::move(file));
}

}  // namespace

Result<std::unique_ptr<RecordFile>> RecordFile::Open(std::string path,
                                                     const RecordFileOptions& options) {
  EDL_ASSIGN_OR_RETURN(InputFile input, InputFile::Open(std::move(path)));
  RecordFormat format = RecordFormat::kRecordIo;
  if (options.format.has_value()) {
    format = *options.format;
  } else {
    EDL_ASSIGN_OR_RETURN(format, DetectFormat(input));
  }
  if (options.has_header && format != RecordFormat::kCsv && format != RecordFormat::kTsv) {
    return InvalidArgument("{} is a file of format {}: only CSV and TSV files have a header",
                           input.path(), NameOf(format));
  }
  switch (format) {
    case RecordFormat::kRecordIo:
      return AsRecordFile(RecordIoFile::Open(std::move(input)));
    case RecordFormat::kTfRecord:
      return std::unique_ptr<RecordFile>(std::make_unique<TfRecordFile>(std::move(input)));
    case RecordFormat::kCsv:
    case RecordFormat::kTsv:
      return AsRecordFile(CsvFile::Open(std::move(input), format, options.has_header));
    case RecordFormat::kNpy:
      return AsRecordFile(NpyFile::Open(std::move(input)));
  }
  return Internal("unknown format {}", static_cast<int>(format));
}

Result<RecordIndex> RecordFile::BuildIndex() {
  const MutexLock lock(mutex_);
  Result<RecordIndex> index = Scan();
  // A change also explains damage, so it is reported first.
  EDL_RETURN_IF_ERROR(input_.CheckUnchanged());
  return index;
}

Status RecordFile::Read(const RecordIndex& index, uint64_t first, uint64_t end, RecordBatch& out) {
  if (first > end || end > index.count) {
    return OutOfRange("{} has {} records, so [{}, {}) cannot be read", input_.path(), index.count,
                      first, end);
  }
  const MutexLock lock(mutex_);
  Status read = first == end ? Ok() : ReadSome(index, first, end, out);
  EDL_RETURN_IF_ERROR(input_.CheckUnchanged());
  return read;
}

}  // namespace edl::data
