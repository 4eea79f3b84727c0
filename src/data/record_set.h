#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "data/index_store.h"
#include "data/record_batch.h"
#include "data/record_file.h"

namespace edl::data {

struct RecordSetOptions {
  RecordFileOptions file;
  // For index files where the folder of the data cannot be written. Empty: they are then only kept
  // in memory.
  std::filesystem::path index_folder;
};

// The records of a file, of a directory or of files that match a pattern. Records are numbered over
// all files, which are ordered by name. All files have the same format, columns and element type.
//
// The files must not change while the set exists; a read of a changed file fails.
//
// Thread-safe. Reads of different files run in parallel.
class RecordSet {
 public:
  struct File {
    std::string path;
    int64_t start = 0;  // number of its first record
    int64_t count = 0;

    bool operator==(const File&) const = default;
  };

  // Counts the records, with index files where they exist. Fails like FindRecordFiles,
  // RecordFile::Open and RecordFile::BuildIndex. InvalidArgument: the files differ in their format.
  static Result<std::unique_ptr<RecordSet>> Open(const std::string& path,
                                                 const RecordSetOptions& options = {});

  int64_t count() const { return count_; }
  const std::vector<File>& files() const { return files_; }
  RecordFormat format() const { return format_; }
  const RecordSchema& schema() const { return schema_; }

  // Adds the records [first, end) to `out`; after a failure `out` has some of them. OutOfRange: the
  // set has fewer records. FailedPrecondition, NotFound: a file was changed or removed. DataLoss: a
  // file is damaged; the message has its path and the offset.
  Status Read(int64_t first, int64_t end, RecordBatch& out);

 private:
  explicit RecordSet(RecordSetOptions options)
      : options_(std::move(options)), store_(options_.index_folder) {}

  Status Add(const std::string& path);
  Result<RecordIndex> IndexOf(RecordFile& file) const;
  Status CheckLikeTheFirst(const RecordFile& file) const;
  // The open file `index`. Shared by the list of open files and a read that is under way.
  Result<std::shared_ptr<RecordFile>> OpenedFile(size_t index);

  struct OpenFile {
    size_t index = 0;
    std::shared_ptr<RecordFile> file;
  };

  const RecordSetOptions options_;
  const IndexStore store_;
  // Constant after Open.
  int64_t count_ = 0;
  RecordFormat format_ = RecordFormat::kRecordIo;
  RecordSchema schema_;
  std::vector<File> files_;
  std::vector<RecordIndex> indexes_;
  std::vector<FileStamp> stamps_;

  Mutex mutex_;
  std::vector<OpenFile> open_ GUARDED_BY(mutex_);  // the last one was used last
};

}  // namespace edl::data
