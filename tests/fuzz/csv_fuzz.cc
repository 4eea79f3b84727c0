// The input is a CSV file. Its records are those of a reader that looks at one byte after the
// other.

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "data/testing/read_as_records.h"

namespace {

// nullopt: a quote is not closed.
std::optional<std::vector<std::string>> PlainLines(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  bool quoted = false;
  bool at_field = true;
  const auto add = [&] {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
    line.clear();
    at_field = true;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quoted) {
      line += letter;
      if (letter != '"') continue;
      if (i + 1 < text.size() && text[i + 1] == '"') {
        line += text[++i];
      } else {
        quoted = false;
      }
    } else if (letter == '\n') {
      add();
    } else {
      line += letter;
      quoted = at_field && letter == '"';
      at_field = letter == ',';
    }
  }
  if (quoted) return std::nullopt;
  add();
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  using edl::data::RecordFormat;
  edl::data::ReadAsRecords(bytes, RecordFormat::kTsv, /*has_header=*/true);
  edl::data::ReadAsRecords(bytes, RecordFormat::kCsv);

  static const std::string path = fmt::format("/dev/shm/csv-lines-fuzz-{}", getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  const auto file = edl::data::RecordFile::Open(path, {.format = RecordFormat::kCsv});
  CHECK(file.ok(), "{}", file.status().message());
  const auto index = (*file)->BuildIndex();
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const auto expected = PlainLines(bytes);
  CHECK(index.ok() == expected.has_value(), "{}", index.status().message());
  if (index.ok()) {
    edl::data::RecordBatch all;
    const edl::Status read = (*file)->Read(*index, 0, index->count, all);
    CHECK(read.ok() && all.size() == expected->size(), "{} records, not {}", all.size(),
          expected->size());
    for (size_t i = 0; i < all.size(); ++i) CHECK(all[i] == (*expected)[i], "record {}", i);
  }
  unlink(path.c_str());
  return 0;
}
