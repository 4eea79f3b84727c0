#include "checkpoint/part_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"

namespace edl::checkpoint {
namespace {

constexpr std::array<char, 8> kMagic = {'E', 'D', 'L', 'P', 'A', 'R', 'T', '1'};
constexpr uint64_t kMostBytes = uint64_t{1} << 31;
// The kernel writes back by itself only when many bytes wait, and then all at once. So it is told
// to start after this many.
constexpr uint64_t kFlushBytes = uint64_t{8} << 20;

// The header of a chunk, as in the file.
struct ChunkHeader {
  uint32_t kind = 0;
  uint32_t index = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint32_t zero = 0;
  uint32_t checksum = 0;  // of the fields above and the content
};
static_assert(sizeof(ChunkHeader) == 32);

uint32_t ChecksumOf(const ChunkHeader& header, std::span<const std::byte> content) {
  const auto fields = std::as_bytes(std::span(&header, 1)).first(offsetof(ChunkHeader, checksum));
  return Crc32c(content, Crc32c(fields));
}

}  // namespace

Result<std::unique_ptr<PartWriter>> PartWriter::Create(std::filesystem::path path,
                                                       const CheckpointFiles& files) {
  EDL_ASSIGN_OR_RETURN(CheckpointFiles::Created created, files.Create(path));
  return Begin(std::move(path), std::move(created));
}

Result<std::unique_ptr<PartWriter>> PartWriter::Begin(std::filesystem::path path,
                                                      CheckpointFiles::Created created) {
  std::unique_ptr<PartWriter> writer(new PartWriter(std::move(path), std::move(created)));
  EDL_RETURN_IF_ERROR(writer->WriteBytes(kMagic.data(), kMagic.size()));
  return writer;
}

Status PartWriter::WriteBytes(const void* data, size_t size) {
  const auto* at = static_cast<const std::byte*>(data);
  while (size > 0) {
    const ssize_t written = write(file_.get(), at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Errno("writing {} at {}", path_.string(), bytes_);
    at += written;
    size -= static_cast<size_t>(written);
    bytes_ += static_cast<uint64_t>(written);
  }
  return Ok();
}

Status PartWriter::Write(const Chunk& chunk) {
  if (chunk.content.size() > kMostBytes) {
    return ResourceExhausted("writing {}: a chunk has {} bytes, and the limit of a reader is {}",
                             path_.string(), chunk.content.size(), kMostBytes);
  }
  ChunkHeader header{.kind = static_cast<uint32_t>(chunk.kind),
                     .index = chunk.index,
                     .records = chunk.records,
                     .bytes = chunk.content.size()};
  header.checksum = ChecksumOf(header, chunk.content.bytes());
  EDL_RETURN_IF_ERROR(WriteBytes(&header, sizeof(header)));
  EDL_RETURN_IF_ERROR(WriteBytes(chunk.content.data(), chunk.content.size()));
  ++chunks_;
  if (bytes_ - flushed_ >= kFlushBytes) {
    sync_file_range(file_.get(), static_cast<off64_t>(flushed_),
                    static_cast<off64_t>(bytes_ - flushed_), SYNC_FILE_RANGE_WRITE);
    flushed_ = bytes_;
  }
  return Ok();
}

Result<uint64_t> PartWriter::Finish() {
  EDL_RETURN_IF_ERROR(Write({.kind = ChunkKind::kEnd, .records = chunks_, .content = {}}));
  if (fsync(file_.get()) != 0) return Errno("making {} durable", path_.string());
  if (folder_.valid() && fsync(folder_.get()) != 0) {
    return Errno("making the folder of {} durable", path_.string());
  }
  return bytes_;
}

Result<std::unique_ptr<PartReader>> PartReader::Open(std::filesystem::path path,
                                                     std::atomic<uint64_t>* bytes_read,
                                                     const CheckpointFiles& files) {
  EDL_ASSIGN_OR_RETURN(FileDescriptor file, files.Open(path));
  struct stat about {};
  if (fstat(file.get(), &about) != 0) return Errno("opening {}", path.string());
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::unique_ptr<PartReader> reader(new PartReader(
      std::move(path), std::move(file), static_cast<uint64_t>(about.st_size), bytes_read));
  std::array<char, kMagic.size()> magic{};
  EDL_RETURN_IF_ERROR(reader->ReadBytes(magic.data(), magic.size()));
  if (magic != kMagic) return DataLoss("{} is not a part of a checkpoint", reader->path_.string());
  return reader;
}

Status PartReader::ReadBytes(void* data, size_t size) {
  auto* at = static_cast<std::byte*>(data);
  while (size > 0) {
    const ssize_t got = read(file_.get(), at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("reading {} at byte {}", path_.string(), at_);
    if (got == 0) return DataLoss("{} is truncated: it ends at byte {}", path_.string(), at_);
    if (bytes_read_ != nullptr) bytes_read_->fetch_add(static_cast<uint64_t>(got));
    at += got;
    size -= static_cast<size_t>(got);
    at_ += static_cast<uint64_t>(got);
  }
  return Ok();
}

Result<std::optional<Chunk>> PartReader::Next() {
  if (ended_) return std::optional<Chunk>();
  const uint64_t begin = at_;
  ChunkHeader header;
  EDL_RETURN_IF_ERROR(ReadBytes(&header, sizeof(header)));
  const auto damaged = [&] { return DataLoss("{} is damaged at byte {}", path_.string(), begin); };
  // An impossible length allocates no memory.
  if (header.bytes > kMostBytes || header.bytes > size_ - at_) return damaged();
  Chunk chunk{.kind = static_cast<ChunkKind>(header.kind),
              .index = header.index,
              .records = header.records,
              .content = wire::Buffer(header.bytes)};
  EDL_RETURN_IF_ERROR(ReadBytes(chunk.content.data(), chunk.content.size()));
  if (header.checksum != ChecksumOf(header, chunk.content.bytes())) return damaged();
  if (chunk.kind == ChunkKind::kEnd) {
    if (header.records != chunks_ || at_ != size_) return damaged();
    ended_ = true;
    return std::optional<Chunk>();
  }
  ++chunks_;
  return std::optional<Chunk>(std::move(chunk));
}

}  // namespace edl::checkpoint
