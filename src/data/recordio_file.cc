#include "data/recordio_file.h"

#include <algorithm>
#include <utility>

#include "data/little_endian.h"

namespace edl::data {

Result<std::unique_ptr<RecordIoFile>> RecordIoFile::Open(InputFile input) {
  std::unique_ptr<RecordIoFile> file(new RecordIoFile(std::move(input)));
  EDL_ASSIGN_OR_RETURN(file->layout_, file->FindLayout());
  return file;
}

Result<RecordIoHeader> RecordIoFile::NextHeader(RecordIoLayout layout) {
  const uint64_t offset = scanner_.position();
  EDL_RETURN_IF_ERROR(scanner_.Need(RecordIoHeader::kBytes));
  if (scanner_.left() < RecordIoHeader::kBytes) {
    return input().Damaged(offset, "the file ends in the header of a chunk of RecordIO");
  }
  const Result<RecordIoHeader> header = ParseRecordIoHeader(scanner_.window(), layout);
  if (!header.ok()) return input().Damaged(offset, "{}", header.status().message());
  if (header->payload_bytes > scanner_.left() - RecordIoHeader::kBytes) {
    return input().Damaged(offset, "a chunk of RecordIO has {} bytes, and the file ends after {}",
                           header->payload_bytes, scanner_.left() - RecordIoHeader::kBytes);
  }
  return header;
}

Result<RecordIoLayout> RecordIoFile::FindLayout() {
  if (input().size() == 0) return RecordIoLayout::kGo;
  const Result<RecordIoHeader> go = NextHeader(RecordIoLayout::kGo);
  const Result<RecordIoHeader> python = NextHeader(RecordIoLayout::kPython);
  if (!go.ok() && !python.ok()) return go.status();
  if (!python.ok()) return RecordIoLayout::kGo;
  if (!go.ok()) return RecordIoLayout::kPython;
  // Both fit the fields, which is rare: the checksum decides.
  const size_t bytes = RecordIoHeader::kBytes + python->payload_bytes;
  EDL_RETURN_IF_ERROR(scanner_.Need(bytes));
  const std::string_view payload =
      scanner_.window().substr(RecordIoHeader::kBytes, python->payload_bytes);
  const bool is_python = RecordIoChecksum(payload, RecordIoLayout::kPython) == python->checksum;
  return is_python ? RecordIoLayout::kPython : RecordIoLayout::kGo;
}

Result<RecordIndex> RecordIoFile::Scan() {
  RecordIndex index;
  scanner_.Seek(0);
  while (scanner_.left() > 0) {
    EDL_ASSIGN_OR_RETURN(const RecordIoHeader header, NextHeader(layout_));
    if (header.records > 0) index.Add(index.count, scanner_.position());
    index.count += header.records;
    scanner_.Skip(RecordIoHeader::kBytes + header.payload_bytes);
  }
  return index;
}

Status RecordIoFile::FindStarts(const RecordIoHeader& header, uint64_t offset) {
  const std::string_view payload = chunk_.payload.view();
  chunk_.starts.clear();
  chunk_.starts.reserve(std::min<size_t>(header.records, payload.size() / sizeof(uint32_t)));
  size_t at = 0;
  for (uint32_t i = 0; i < header.records; ++i) {
    if (payload.size() - at < sizeof(uint32_t)) {
      return input().Damaged(offset, "a chunk of RecordIO ends in record {} of {}", i,
                             header.records);
    }
    const auto length = Load<uint32_t>(payload.data() + at);
    at += sizeof(uint32_t);
    if (length > payload.size() - at) {
      return input().Damaged(offset,
                             "record {} of a chunk of RecordIO has {} bytes, more than the "
                             "chunk",
                             i, length);
    }
    chunk_.starts.push_back(static_cast<uint32_t>(at));
    at += length;
  }
  if (at != payload.size()) {
    return input().Damaged(offset, "a chunk of RecordIO has {} bytes behind its {} records",
                           payload.size() - at, header.records);
  }
  return Ok();
}

Status RecordIoFile::DecodeChunk(const RecordIoHeader& header, uint64_t first) {
  const uint64_t offset = scanner_.position();
  chunk_.next_offset = 0;
  EDL_RETURN_IF_ERROR(scanner_.Need(RecordIoHeader::kBytes + header.payload_bytes));
  const std::string_view payload =
      scanner_.window().substr(RecordIoHeader::kBytes, header.payload_bytes);
  const Status decoded = DecodePayload(header, layout_, payload, chunk_.payload);
  if (!decoded.ok()) return input().Damaged(offset, "{}", decoded.message());
  ++chunks_decoded_;
  EDL_RETURN_IF_ERROR(FindStarts(header, offset));
  chunk_.first = first;
  chunk_.next_offset = offset + RecordIoHeader::kBytes + header.payload_bytes;
  return Ok();
}

Status RecordIoFile::LoadChunk(const RecordIndex& index, uint64_t record) {
  const RecordIndex::Entry entry = index.Before(record);
  uint64_t first = entry.record;
  uint64_t offset = entry.offset;
  if (chunk_.next_offset != 0 && chunk_.first <= record && chunk_.end() >= first) {
    if (record < chunk_.end()) return Ok();
    first = chunk_.end();
    offset = chunk_.next_offset;
  }
  scanner_.Seek(offset);
  while (scanner_.left() > 0) {
    EDL_ASSIGN_OR_RETURN(const RecordIoHeader header, NextHeader(layout_));
    if (record - first < header.records) return DecodeChunk(header, first);
    first += header.records;
    scanner_.Skip(RecordIoHeader::kBytes + header.payload_bytes);
  }
  return input().Damaged(scanner_.position(), "the file ends before record {}", record);
}

Status RecordIoFile::ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                              RecordBatch& out) {
  while (first < end) {
    EDL_RETURN_IF_ERROR(LoadChunk(index, first));
    const std::string_view payload = chunk_.payload.view();
    const uint64_t stop = std::min(end, chunk_.end());
    for (; first < stop; ++first) {
      const size_t start = chunk_.starts[first - chunk_.first];
      const auto length = Load<uint32_t>(payload.data() + start - sizeof(uint32_t));
      out.Add(payload.substr(start, length));
    }
  }
  return Ok();
}

}  // namespace edl::data
