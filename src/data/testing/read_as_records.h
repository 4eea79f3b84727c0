#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/check.h"
#include "data/record_file.h"

namespace edl::data {

// Reads bytes as a record file of `format`. They are refused with a message that has the path, or
// each record is the same when it is read alone and with all others.
inline void ReadAsRecords(std::string_view bytes, RecordFormat format, bool has_header = false) {
  static const std::string path = fmt::format("/dev/shm/{}-fuzz-{}", NameOf(format), getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  const auto check = [&](const Status& status) {
    CHECK(status.ok() || status.message().find(path) != std::string::npos, "no path in: {}",
          status.message());
    return status.ok();
  };
  const auto file = RecordFile::Open(path, {.format = format, .has_header = has_header});
  if (check(file.status())) {
    const auto index = (*file)->BuildIndex();
    RecordBatch all;
    if (check(index.status()) && check((*file)->Read(*index, 0, index->count, all))) {
      CHECK(all.size() == index->count, "{} of {} records", all.size(), index->count);
      // From the last to the first, so that no read continues the one before it.
      for (uint64_t i = index->count; i > 0 && index->count - i < 100; --i) {
        RecordBatch one;
        const Status read = (*file)->Read(*index, i - 1, i, one);
        CHECK(read.ok(), "record {}: {}", i - 1, read.message());
        CHECK(one.size() == 1 && one[0] == all[i - 1], "record {} differs", i - 1);
      }
    }
  }
  unlink(path.c_str());
}

}  // namespace edl::data
