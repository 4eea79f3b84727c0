#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/file_scanner.h"
#include "data/record_file.h"
#include "data/recordio_chunk.h"

namespace edl::data {

// A RecordIO file in either layout. Keeps the chunk that was read last, so that small ranges do not
// decompress it again.
class RecordIoFile final : public RecordFile {
 public:
  // DataLoss: the file does not begin with a chunk.
  static Result<std::unique_ptr<RecordIoFile>> Open(InputFile input);

  RecordIoLayout layout() const { return layout_; }
  // How many chunks were decompressed.
  uint64_t chunks_decoded() const { return chunks_decoded_; }

 protected:
  Result<RecordIndex> Scan() override;
  Status ReadSome(const RecordIndex& index, uint64_t first, uint64_t end,
                  RecordBatch& out) override;

 private:
  // A chunk in memory.
  struct Chunk {
    uint64_t first = 0;  // its first record
    uint64_t next_offset = 0;
    ByteBuffer payload;
    std::vector<uint32_t> starts;  // of records, behind their lengths

    uint64_t end() const { return first + starts.size(); }
  };

  explicit RecordIoFile(InputFile input)
      : RecordFile(std::move(input), RecordFormat::kRecordIo), scanner_(this->input()) {}

  // By the first chunk.
  Result<RecordIoLayout> FindLayout();
  // Parses the header at the position of the scanner, and checks that the payload is in the file.
  Result<RecordIoHeader> NextHeader(RecordIoLayout layout);
  // Reads the chunk of `record`: the cached one, or the one after an entry of the index.
  Status LoadChunk(const RecordIndex& index, uint64_t record);
  // Decodes the chunk at the position of the scanner, whose first record is `first`.
  Status DecodeChunk(const RecordIoHeader& header, uint64_t first);
  Status FindStarts(const RecordIoHeader& header, uint64_t offset);

  RecordIoLayout layout_ = RecordIoLayout::kGo;
  FileScanner scanner_;
  Chunk chunk_;  // next_offset 0: none
  uint64_t chunks_decoded_ = 0;
};

}  // namespace edl::data
