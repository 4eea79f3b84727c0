#include "data/record_writer.h"

#include <array>
#include <utility>

#include "data/gzip.h"
#include "data/little_endian.h"
#include "data/masked_crc.h"
#include "data/snappy_framing.h"
#include "data/tfrecord_file.h"

namespace edl::data {
namespace {

// RecordIO in the layout of the Go library.
class RecordIoWriter final : public RecordWriter {
 public:
  RecordIoWriter(OutputFile file, const RecordWriterOptions& options)
      : RecordWriter(std::move(file)), options_(options) {}

 protected:
  Status Append(std::string_view record) override {
    if (record.size() >= options_.max_chunk_bytes) {
      return InvalidArgument(
          "{}: a record of {} bytes does not fit into a chunk of RecordIO, whose limit is {} bytes",
          file().path(), record.size(), options_.max_chunk_bytes);
    }
    const uint64_t lengths = records_ * sizeof(uint32_t);
    const bool is_full =
        payload_.size() - lengths + record.size() > options_.max_chunk_bytes ||
        (options_.records_per_chunk > 0 && records_ >= options_.records_per_chunk) ||
        payload_.size() + record.size() + sizeof(uint32_t) > kMostPayloadBytes;
    if (is_full) EDL_RETURN_IF_ERROR(WriteChunk());
    Store(static_cast<uint32_t>(record.size()), payload_.Extend(sizeof(uint32_t)));
    payload_.Append(record);
    ++records_;
    return Ok();
  }

  Status Finish() override { return records_ > 0 ? WriteChunk() : Ok(); }

 private:
  Status WriteChunk() {
    chunk_.Clear();
    chunk_.Extend(RecordIoHeader::kBytes);
    switch (options_.compression) {
      case Compression::kNone:
        chunk_.Append(payload_.view());
        break;
      case Compression::kSnappy:
        SnappyFramedCompress(payload_.view(), chunk_);
        break;
      case Compression::kGzip:
        GzipCompress(payload_.view(), chunk_);
        break;
    }
    const std::string_view stored = chunk_.view().substr(RecordIoHeader::kBytes);
    WriteRecordIoHeader({.checksum = RecordIoChecksum(stored, RecordIoLayout::kGo),
                         .compression = options_.compression,
                         .payload_bytes = static_cast<uint32_t>(stored.size()),
                         .records = records_},
                        chunk_.data());
    payload_.Clear();
    records_ = 0;
    return file().Write(chunk_.view());
  }

  const RecordWriterOptions options_;
  ByteBuffer payload_;
  uint32_t records_ = 0;  // in payload_
  ByteBuffer chunk_;      // as it is written
};

class TfRecordWriter final : public RecordWriter {
 public:
  explicit TfRecordWriter(OutputFile file) : RecordWriter(std::move(file)) {}

 protected:
  Status Append(std::string_view record) override {
    std::array<char, kTfRecordHeader> header{};
    Store(static_cast<uint64_t>(record.size()), header.data());
    const std::string_view length(header.data(), sizeof(uint64_t));
    Store(MaskedCrc(length), header.data() + sizeof(uint64_t));
    buffer_.Append({header.data(), header.size()});
    buffer_.Append(record);
    Store(MaskedCrc(record), buffer_.Extend(kTfRecordFooter));
    constexpr size_t kFlushBytes = size_t{1} << 20;
    return buffer_.size() < kFlushBytes ? Ok() : Finish();
  }

  Status Finish() override {
    Status wrote = file().Write(buffer_.view());
    buffer_.Clear();
    return wrote;
  }

 private:
  ByteBuffer buffer_;
};

}  // namespace

Result<Compression> ParseCompression(std::string_view name) {
  if (name == "none") return Compression::kNone;
  if (name == "snappy") return Compression::kSnappy;
  if (name == "gzip") return Compression::kGzip;
  return InvalidArgument("'{}' is not a compression of RecordIO; use none, snappy or gzip", name);
}

Result<std::unique_ptr<RecordWriter>> RecordWriter::Create(std::string path,
                                                           const RecordWriterOptions& options) {
  if (options.format != RecordFormat::kRecordIo && options.format != RecordFormat::kTfRecord) {
    return InvalidArgument("{}: files of format {} cannot be written; use recordio or tfrecord",
                           path, NameOf(options.format));
  }
  constexpr uint64_t kMostChunkBytes = kMostPayloadBytes / 2;
  if (options.max_chunk_bytes == 0 || options.max_chunk_bytes > kMostChunkBytes) {
    return InvalidArgument("{}: max_chunk_bytes is {}, and must be between 1 and {}", path,
                           options.max_chunk_bytes, kMostChunkBytes);
  }
  EDL_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(std::move(path)));
  if (options.format == RecordFormat::kTfRecord) {
    return std::unique_ptr<RecordWriter>(std::make_unique<TfRecordWriter>(std::move(file)));
  }
  return std::unique_ptr<RecordWriter>(std::make_unique<RecordIoWriter>(std::move(file), options));
}

Status RecordWriter::Write(std::string_view record) {
  if (closed_) return FailedPrecondition("{}: the writer was closed", file_.path());
  EDL_RETURN_IF_ERROR(failure_);
  Status appended = Append(record);
  // A record that is too large leaves the writer as it was.
  if (appended.code() != Code::kInvalidArgument) failure_ = appended;
  return appended;
}

Status RecordWriter::Close() {
  if (closed_) return Ok();
  EDL_RETURN_IF_ERROR(failure_);
  failure_ = Finish();
  if (failure_.ok()) failure_ = file_.Commit();
  closed_ = failure_.ok();
  return failure_;
}

}  // namespace edl::data
