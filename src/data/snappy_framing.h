#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "data/byte_buffer.h"

namespace edl::data {

// Snappy's framing format: a stream identifier, then frames of at most 64 KiB of content, each with
// a checksum.

// Appends the compressed stream to `out`.
void SnappyFramedCompress(std::string_view bytes, ByteBuffer& out);

// Appends the content of a stream to `out`. DataLoss: `bytes` are damaged. ResourceExhausted: the
// content has more than `most` bytes.
Status SnappyFramedDecompress(std::string_view bytes, size_t most, ByteBuffer& out);

// The same for one block without frames, as the older Python package writes it.
Status SnappyBlockDecompress(std::string_view bytes, size_t most, ByteBuffer& out);

}  // namespace edl::data
