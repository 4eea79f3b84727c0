#include "data/tfrecord_file.h"

#include "data/little_endian.h"
#include "data/masked_crc.h"

namespace edl::data {
namespace {

// A record is held in memory as a whole.
constexpr uint64_t kMostTfRecordBytes = uint64_t{1} << 30;

}  // namespace

bool IsTfRecordHeader(std::string_view bytes) {
  return bytes.size() >= kTfRecordHeader && Load<uint32_t>(bytes.data() + sizeof(uint64_t)) ==
                                                MaskedCrc(bytes.substr(0, sizeof(uint64_t)));
}

Result<uint64_t> TfRecordFile::NextLength() {
  EDL_RETURN_IF_ERROR(scanner_.Need(kTfRecordHeader));
  const uint64_t offset = scanner_.position();
  const uint64_t left = scanner_.left();
  if (left < kTfRecordHeader) return input().Damaged(offset, "the file ends in a TFRecord header");
  if (!IsTfRecordHeader(scanner_.window())) {
    return input().Damaged(offset, "the checksum of the length of a TFRecord is wrong");
  }
  const auto length = Load<uint64_t>(scanner_.window().data());
  if (length > kMostTfRecordBytes) {
    return input().Damaged(offset, "a TFRecord has {} bytes, and the limit is {}", length,
                           kMostTfRecordBytes);
  }
  if (length + kTfRecordHeader + kTfRecordFooter > left) {
    return input().Damaged(offset, "the file ends in a TFRecord of {} bytes", length);
  }
  return length;
}

Result<RecordIndex> TfRecordFile::Scan() {
  RecordIndex index;
  scanner_.Seek(0);
  while (scanner_.left() > 0) {
    EDL_ASSIGN_OR_RETURN(const uint64_t length, NextLength());
    index.Add(index.count, scanner_.position());
    ++index.count;
    scanner_.Skip(kTfRecordHeader + length + kTfRecordFooter);
  }
  return index;
}

Status TfRecordFile::ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                              RecordBatch& out) {
  RecordIndex::Entry at = index.Before(first);
  if (next_.record <= first && next_.record >= at.record) at = next_;
  scanner_.Seek(at.offset);
  for (uint64_t record = at.record; record < end; ++record) {
    const uint64_t offset = scanner_.position();
    if (scanner_.left() == 0) {
      return input().Damaged(offset, "the file ends before record {}", record);
    }
    EDL_ASSIGN_OR_RETURN(const uint64_t length, NextLength());
    if (record >= first) {
      EDL_RETURN_IF_ERROR(scanner_.Need(kTfRecordHeader + length + kTfRecordFooter));
      const std::string_view content = scanner_.window().substr(kTfRecordHeader, length);
      if (Load<uint32_t>(content.data() + length) != MaskedCrc(content)) {
        return input().Damaged(offset, "the checksum of record {} is wrong", record);
      }
      out.Add(content);
    }
    scanner_.Skip(kTfRecordHeader + length + kTfRecordFooter);
  }
  next_ = {.record = end, .offset = scanner_.position()};
  return Ok();
}

}  // namespace edl::data
