#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "data/byte_buffer.h"
#include "data/input_file.h"

namespace edl::data {

// Reads a file from front to back through a buffer. Confined.
class FileScanner {
 public:
  // `file` outlives the scanner.
  explicit FileScanner(const InputFile& file) : file_(file) {}

  // Continues at another offset. Keeps buffered bytes that follow it.
  void Seek(uint64_t offset);
  void Skip(uint64_t bytes) { Seek(position_ + bytes); }

  uint64_t position() const { return position_; }
  // Bytes from the position to the end of the file.
  uint64_t left() const { return position_ < file_.size() ? file_.size() - position_ : 0; }
  // The buffered bytes from the position on. Valid until Seek or Need.
  std::string_view window() const {
    return buffer_.view().substr(static_cast<size_t>(position_ - start_));
  }

  // Makes the window at least `bytes` long, or as long as the file has bytes. Fails like
  // InputFile::ReadAt. REQUIRES: `bytes` is limited by the caller, because they are held in memory.
  Status Need(size_t bytes) { return window().size() >= bytes ? Ok() : Fill(bytes); }

 private:
  Status Fill(size_t bytes);

  const InputFile& file_;
  uint64_t position_ = 0;
  uint64_t start_ = 0;  // offset of buffer_ in the file; start_ <= position_ <= start_ + its size
  ByteBuffer buffer_;
};

}  // namespace edl::data
