#include "data/npy_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/ranges.h>

namespace edl::data {

Result<std::unique_ptr<NpyFile>> NpyFile::Open(InputFile input) {
  std::string first(std::min(input.size(), kMostNpyHeaderBytes), '\0');
  EDL_RETURN_IF_ERROR(input.ReadAt(0, first.data(), first.size()));
  const Result<NpyHeader> header = ParseNpyHeader(first);
  if (!header.ok()) {
    return Status(header.status().code(),
                  fmt::format("{} at offset 0: {}", input.path(), header.status().message()));
  }
  const uint64_t content = input.size() - header->header_bytes;
  uint64_t expected = 0;
  if (__builtin_mul_overflow(header->record_bytes, static_cast<uint64_t>(header->shape[0]),
                             &expected) ||
      expected != content) {
    return input.Damaged(header->header_bytes,
                         "the header says {} records of {} bytes, and {} bytes follow it",
                         header->shape[0], header->record_bytes, content);
  }
  if (expected == 0 && header->shape[0] > 0) {
    return Status(Code::kUnimplemented,
                  fmt::format("{}: an array of shape ({}) has records of 0 bytes", input.path(),
                              fmt::join(header->shape, ", ")));
  }
  RecordSchema schema{.dtype = header->dtype,
                      .record_shape = {header->shape.begin() + 1, header->shape.end()}};
  std::unique_ptr<NpyFile> file(new NpyFile(std::move(input), *header));
  file->set_schema(std::move(schema));
  return file;
}

Result<RecordIndex> NpyFile::Scan() {
  RecordIndex index{.count = static_cast<uint64_t>(header_.shape[0])};
  if (index.count > 0) index.Add(0, header_.header_bytes);
  return index;
}

Status NpyFile::ReadSome(const RecordIndex& /*index*/, uint64_t first, uint64_t end,
                         RecordBatch& out) {
  const uint64_t count = end - first;
  const uint64_t bytes = count * header_.record_bytes;
  const size_t before = out.bytes.size();
  char* const to = out.bytes.Extend(bytes);
  EDL_RETURN_IF_ERROR(
      input().ReadAt(header_.header_bytes + first * header_.record_bytes, to, bytes));
  out.offsets.reserve(out.offsets.size() + count);
  for (uint64_t i = 1; i <= count; ++i) {
    out.offsets.push_back(static_cast<int64_t>(before + i * header_.record_bytes));
  }
  return Ok();
}

}  // namespace edl::data
