#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/testing/temporary_folder.h"
#include "data/record_file.h"
#include "data/record_writer.h"

namespace edl::data {

using Strings = std::vector<std::string>;

inline Strings StringsOf(const RecordBatch& batch) {
  Strings records;
  for (size_t i = 0; i < batch.size(); ++i) records.emplace_back(batch[i]);
  return records;
}

// A folder with record files.
class RecordFolder {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return (path() / name).string(); }

  // Returns the path.
  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(path() / name, std::ios::binary | std::ios::trunc) << content;
    return *this / name;
  }

  Result<std::string> WriteRecords(const std::string& name, const Strings& records,
                                   const RecordWriterOptions& options = {}) const {
    EDL_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(*this / name, options));
    for (const std::string& record : records) EDL_RETURN_IF_ERROR(writer->Write(record));
    EDL_RETURN_IF_ERROR(writer->Close());
    return *this / name;
  }

 private:
  TemporaryFolder folder_;
};

// "0a4b" is "\nK".
inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// All records of a file, read in ranges of `step` records.
inline Result<Strings> ReadRecords(RecordFile& file, uint64_t step = 1000) {
  EDL_ASSIGN_OR_RETURN(const RecordIndex index, file.BuildIndex());
  RecordBatch batch;
  for (uint64_t first = 0; first < index.count; first += step) {
    EDL_RETURN_IF_ERROR(file.Read(index, first, std::min(first + step, index.count), batch));
  }
  return StringsOf(batch);
}

inline Result<Strings> ReadRecords(const std::string& path, const RecordFileOptions& options = {},
                                   uint64_t step = 1000) {
  EDL_ASSIGN_OR_RETURN(const auto file, RecordFile::Open(path, options));
  return ReadRecords(*file, step);
}

// `count` different records of 0 to 99 bytes.
inline Strings SomeRecords(size_t count) {
  Strings records;
  for (size_t i = 0; i < count; ++i) {
    std::string record = i % 100 == 0 ? "" : fmt::format("record {} ", i);
    record.resize(std::min<size_t>(record.size() + i * 7 % 90, i % 100 == 0 ? 0 : 99),
                  static_cast<char>(i));
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace edl::data
