#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/checkpoint_files.h"
#include "wire/frame.h"

namespace edl::checkpoint {

// The chunks of a part of a checkpoint, docs/formats/checkpoint.md.
enum class ChunkKind : uint32_t {
  kHead = 1,         // JSON that describes the other chunks
  kWatermarks = 2,   // which batches were applied
  kSteps = 3,        // how often each bucket was changed
  kRows = 4,         // of a table
  kBlock = 5,        // of a tensor
  kEnd = 6,          // the last chunk
  kCandidates = 7,   // of a table: ids that have no row yet
  kRound = 8,        // how many gradients each bucket's open round has
  kRoundRows = 9,    // of a table, in open rounds
  kRoundBlock = 10,  // of a tensor, in open rounds
};

struct Chunk {
  ChunkKind kind = ChunkKind::kEnd;
  uint32_t index = 0;    // of the table or tensor in the head
  uint64_t records = 0;  // kRows: how many; kBlock: index of the block; kEnd: chunks before it
  wire::Buffer content;
};

// Writes a part, the file of one lane. Confined.
class PartWriter {
 public:
  // Fails like CheckpointFiles::Create.
  static Result<std::unique_ptr<PartWriter>> Create(
      std::filesystem::path path, const CheckpointFiles& files = CheckpointFiles::Anywhere());
  // Writes to a file that was just created.
  static Result<std::unique_ptr<PartWriter>> Begin(std::filesystem::path path,
                                                   CheckpointFiles::Created created);

  // ResourceExhausted: the disk is full, or the chunk is larger than a reader accepts.
  Status Write(const Chunk& chunk);
  // Writes the last chunk, syncs the file, and returns its size in bytes.
  Result<uint64_t> Finish();

 private:
  PartWriter(std::filesystem::path path, CheckpointFiles::Created created)
      : path_(std::move(path)),
        file_(std::move(created.file)),
        folder_(std::move(created.folder)) {}

  Status WriteBytes(const void* data, size_t size);

  const std::filesystem::path path_;
  const FileDescriptor file_;
  const FileDescriptor folder_;  // not valid: the folder is not synced
  uint64_t bytes_ = 0;
  uint64_t flushed_ = 0;  // bytes that the kernel was told to write back
  uint64_t chunks_ = 0;
};

// Reads a part. Confined.
class PartReader {
 public:
  // Adds the number of bytes that are read to `*bytes_read`, which outlives the reader and may be
  // null. Fails like CheckpointFiles::Open. DataLoss: the file is not a part.
  static Result<std::unique_ptr<PartReader>> Open(
      std::filesystem::path path, std::atomic<uint64_t>* bytes_read = nullptr,
      const CheckpointFiles& files = CheckpointFiles::Anywhere());

  // nullopt: the end. DataLoss: the file is damaged or truncated; the message has the
  // position.
  Result<std::optional<Chunk>> Next();
  const std::filesystem::path& path() const { return path_; }

 private:
  PartReader(std::filesystem::path path, FileDescriptor file, uint64_t size,
             std::atomic<uint64_t>* bytes_read)
      : path_(std::move(path)), file_(std::move(file)), size_(size), bytes_read_(bytes_read) {}

  Status ReadBytes(void* data, size_t size);

  const std::filesystem::path path_;
  const FileDescriptor file_;
  const uint64_t size_;
  std::atomic<uint64_t>* const bytes_read_;
  uint64_t at_ = 0;
  uint64_t chunks_ = 0;
  bool ended_ = false;
};

}  // namespace edl::checkpoint
