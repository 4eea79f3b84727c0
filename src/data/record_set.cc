#include "data/record_set.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "data/record_paths.h"

namespace edl::data {
namespace {

// Each has a buffer, and a RecordIO file a chunk of 32 MiB or more.
constexpr size_t kMostOpenFiles = 4;

// Counting again is as fast as reading an index, so small files get none.
constexpr uint64_t kLeastIndexedBytes = RecordIndex::kSpacing;

}  // namespace

Result<std::unique_ptr<RecordSet>> RecordSet::Open(const std::string& path,
                                                   const RecordSetOptions& options) {
  EDL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindRecordFiles(path));
  std::unique_ptr<RecordSet> set(new RecordSet(options));
  for (const std::string& file : paths) EDL_RETURN_IF_ERROR(set->Add(file));
  return set;
}

Status RecordSet::CheckLikeTheFirst(const RecordFile& file) const {
  const std::string& path = file.input().path();
  const std::string& first = files_.front().path;
  if (file.format() != format_) {
    return InvalidArgument("{} is a file of format {}, and {} is one of format {}", path,
                           NameOf(file.format()), first, NameOf(format_));
  }
  const RecordSchema& schema = file.schema();
  if (schema.column_names != schema_.column_names) {
    return InvalidArgument("{} has the columns {}, and {} has {}", path,
                           fmt::join(schema.column_names, ", "), first,
                           fmt::join(schema_.column_names, ", "));
  }
  if (schema != schema_) {
    return InvalidArgument("{} has records of type {} and shape ({}), and {} has {} and ({})", path,
                           schema.dtype, fmt::join(schema.record_shape, ", "), first, schema_.dtype,
                           fmt::join(schema_.record_shape, ", "));
  }
  return Ok();
}

Result<RecordIndex> RecordSet::IndexOf(RecordFile& file) const {
  const InputFile& input = file.input();
  const bool is_stored = file.format() != RecordFormat::kNpy && input.size() >= kLeastIndexedBytes;
  const IndexKey key{
      .format = file.format(), .has_header = options_.file.has_header, .stamp = input.stamp()};
  if (is_stored) {
    if (auto stored = store_.Load(input.path(), key)) return *std::move(stored);
  }
  EDL_ASSIGN_OR_RETURN(RecordIndex built, file.BuildIndex());
  if (is_stored) store_.Save(input.path(), key, built);
  return built;
}

Status RecordSet::Add(const std::string& path) {
  EDL_ASSIGN_OR_RETURN(const std::unique_ptr<RecordFile> file,
                       RecordFile::Open(path, options_.file));
  if (files_.empty()) {
    format_ = file->format();
    schema_ = file->schema();
  }
  files_.push_back({.path = path, .start = count_});
  EDL_RETURN_IF_ERROR(CheckLikeTheFirst(*file));
  EDL_ASSIGN_OR_RETURN(RecordIndex index, IndexOf(*file));
  files_.back().count = static_cast<int64_t>(index.count);
  if (__builtin_add_overflow(count_, files_.back().count, &count_) || files_.back().count < 0) {
    return InvalidArgument("{} has {} records, too many together", path, index.count);
  }
  indexes_.push_back(std::move(index));
  stamps_.push_back(file->input().stamp());
  return Ok();
}

Result<std::shared_ptr<RecordFile>> RecordSet::OpenedFile(size_t index) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const OpenFile& open) { return open.index == index; });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
    return open_.back().file;
  }
  RecordFileOptions options = options_.file;
  options.format = format_;
  EDL_ASSIGN_OR_RETURN(std::shared_ptr<RecordFile> file,
                       RecordFile::Open(files_[index].path, options));
  if (file->input().stamp() != stamps_[index]) {
    return FailedPrecondition(
        "{} was changed after its records were counted: it had {} bytes and has {}; open it again",
        files_[index].path, stamps_[index].size, file->input().size());
  }
  if (open_.size() == kMostOpenFiles) open_.erase(open_.begin());
  open_.push_back({.index = index, .file = file});
  return file;
}

Status RecordSet::Read(int64_t first, int64_t end, RecordBatch& out) {
  if (first < 0 || first > end || end > count_) {
    return OutOfRange("there are {} records, so [{}, {}) cannot be read", count_, first, end);
  }
  auto file = std::upper_bound(
      files_.begin(), files_.end(), first,
      [](int64_t record, const File& candidate) { return record < candidate.start; });
  for (--file; first < end; ++file) {
    const int64_t stop = std::min(end, file->start + file->count);
    if (stop == first) continue;  // a file without records
    const auto index = static_cast<size_t>(file - files_.begin());
    EDL_ASSIGN_OR_RETURN(const std::shared_ptr<RecordFile> opened, OpenedFile(index));
    EDL_RETURN_IF_ERROR(opened->Read(indexes_[index], static_cast<uint64_t>(first - file->start),
                                     static_cast<uint64_t>(stop - file->start), out));
    first = stop;
  }
  return Ok();
}

}  // namespace edl::data
