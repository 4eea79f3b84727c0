#include "data/file_scanner.h"

#include <algorithm>

namespace edl::data {
namespace {

// A read of this size costs little more than the copy of its bytes.
constexpr size_t kReadBytes = size_t{1} << 20;
// The first read after a jump, which often needs only some records.
constexpr size_t kFirstReadBytes = size_t{256} << 10;

}  // namespace

void FileScanner::Seek(uint64_t offset) {
  position_ = offset;
  if (offset < start_ || offset > start_ + buffer_.size()) {
    buffer_.Clear();
    start_ = offset;
  }
}

Status FileScanner::Fill(size_t bytes) {
  const bool jumped = buffer_.size() == 0;
  buffer_.RemovePrefix(static_cast<size_t>(position_ - start_));
  start_ = position_;
  const size_t have = buffer_.size();
  const size_t wanted =
      std::min<uint64_t>(std::max({bytes, have + (jumped ? kFirstReadBytes : kReadBytes)}), left());
  if (wanted <= have) return Ok();
  Status read = file_.ReadAt(start_ + have, buffer_.Extend(wanted - have), wanted - have);
  if (!read.ok()) buffer_.Truncate(have);
  return read;
}

}  // namespace edl::data
