#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "data/record_set.h"
#include "data/record_writer.h"

namespace edl::native {

// data::RecordSet for Python. Calls release the GIL while they read. Thread-safe.
class Records {
 public:
  // An empty `format` is found by content and name. An empty `index_dir`: none.
  Records(const std::string& path, const std::string& format, bool header,
          const std::string& index_dir);

  int64_t Count() const { return set_->count(); }
  std::vector<std::tuple<std::string, int64_t, int64_t>> Files() const;
  std::string Format() const { return std::string(NameOf(set_->format())); }
  const data::RecordSchema& schema() const { return set_->schema(); }

  // A list of bytes.
  nanobind::list Read(int64_t first, int64_t end);
  // The bytes of all records as a uint8 array, and where each begins as an int64 array.
  nanobind::tuple ReadFlat(int64_t first, int64_t end);

 private:
  data::RecordBatch ReadBatch(int64_t first, int64_t end);

  std::unique_ptr<data::RecordSet> set_;
};

// data::RecordWriter for Python. Thread-safe: the GIL is held.
class Writer {
 public:
  Writer(std::string path, const std::string& format, const std::string& compression,
         uint64_t max_chunk_bytes, uint64_t records_per_chunk);

  void Write(const nanobind::bytes& record);
  void Close();
  // Removes what was written, unless the file is complete.
  void Abandon() { writer_.reset(); }

 private:
  std::unique_ptr<data::RecordWriter> writer_;  // null: abandoned
};

// Adds the classes to the module.
void DefineRecords(nanobind::module_& module);

}  // namespace edl::native
