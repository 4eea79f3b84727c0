#include "data/csv_file.h"

#include <array>
#include <utility>

namespace edl::data {

Result<std::unique_ptr<CsvFile>> CsvFile::Open(InputFile input, RecordFormat format,
                                               bool has_header) {
  std::unique_ptr<CsvFile> file(new CsvFile(std::move(input), format));
  EDL_RETURN_IF_ERROR(file->SkipByteOrderMark());
  if (has_header) {
    EDL_RETURN_IF_ERROR(file->ReadHeader(format == RecordFormat::kTsv ? '\t' : ','));
  }
  file->next_ = {.record = 0, .offset = file->begin_};
  return file;
}

Status CsvFile::SkipByteOrderMark() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::array<char, kMark.size()> first{};
  if (input().size() < first.size()) return Ok();
  EDL_RETURN_IF_ERROR(input().ReadAt(0, first.data(), first.size()));
  if (std::string_view(first.data(), first.size()) == kMark) begin_ = kMark.size();
  return Ok();
}

Status CsvFile::ReadHeader(char separator) {
  std::string_view line;
  uint64_t offset = 0;
  scanner_.Seek(begin_);
  EDL_ASSIGN_OR_RETURN(const bool found, scanner_.Next(line, offset));
  if (!found) return input().Damaged(begin_, "the file has no line, so it has no header");
  set_schema({.column_names = SplitCsvLine(line, separator)});
  begin_ = scanner_.position();
  return Ok();
}

Result<RecordIndex> CsvFile::Scan() {
  RecordIndex index;
  scanner_.Seek(begin_);
  std::string_view line;
  uint64_t offset = 0;
  while (true) {
    EDL_ASSIGN_OR_RETURN(const bool found, scanner_.Next(line, offset));
    if (!found) return index;
    index.Add(index.count, offset);
    ++index.count;
  }
}

Status CsvFile::ReadSome(const RecordIndex& index, uint64_t first, uint64_t end, RecordBatch& out) {
  RecordIndex::Entry at = index.Before(first);
  if (next_.record <= first && next_.record >= at.record) at = next_;
  if (scanner_.position() != at.offset) scanner_.Seek(at.offset);
  std::string_view line;
  uint64_t offset = 0;
  for (uint64_t record = at.record; record < end; ++record) {
    EDL_ASSIGN_OR_RETURN(const bool found, scanner_.Next(line, offset));
    if (!found) {
      return input().Damaged(scanner_.position(), "the file ends before record {}", record);
    }
    if (record >= first) out.Add(line);
  }
  next_ = {.record = end, .offset = scanner_.position()};
  return Ok();
}

}  // namespace edl::data
