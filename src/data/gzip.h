#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "data/byte_buffer.h"

namespace edl::data {

// Appends the compressed bytes to `out`, as one gzip member.
void GzipCompress(std::string_view bytes, ByteBuffer& out);

// Appends the content of one or more gzip members to `out`. DataLoss: `bytes` are damaged.
// ResourceExhausted: the content has more than `most` bytes.
Status GzipDecompress(std::string_view bytes, size_t most, ByteBuffer& out);

}  // namespace edl::data
