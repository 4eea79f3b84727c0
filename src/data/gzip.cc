#include "data/gzip.h"

#include <algorithm>

#include <zlib.h>

#include "base/check.h"

namespace edl::data {
namespace {

constexpr int kWindowBits = 15 + 16;  // of zlib: 15, and a gzip header
constexpr size_t kPiece = size_t{256} << 10;

// zlib does not change the input, but older versions of its API lack the const.
Bytef* InputOf(std::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT
}

}  // namespace

void GzipCompress(std::string_view bytes, ByteBuffer& out) {
  z_stream stream{};
  constexpr int kMemory = 8;
  CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits, kMemory,
                     Z_DEFAULT_STRATEGY) == Z_OK,
        "zlib has no memory");
  const size_t before = out.size();
  const size_t most = deflateBound(&stream, bytes.size());
  stream.next_in = InputOf(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.Extend(most));
  stream.avail_out = static_cast<uInt>(most);
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "{} bytes do not fit", bytes.size());
  out.Truncate(before + stream.total_out);
  deflateEnd(&stream);
}

Status GzipDecompress(std::string_view bytes, size_t most, ByteBuffer& out) {
  z_stream stream{};
  CHECK(inflateInit2(&stream, kWindowBits) == Z_OK, "zlib has no memory");
  stream.next_in = InputOf(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  const size_t before = out.size();
  Status status = Ok();
  while (true) {
    const size_t piece = std::min(kPiece, most + 1 - (out.size() - before));
    stream.next_out = reinterpret_cast<Bytef*>(out.Extend(piece));
    stream.avail_out = static_cast<uInt>(piece);
    const int result = inflate(&stream, Z_NO_FLUSH);
    out.Truncate(out.size() - stream.avail_out);
    if (out.size() - before > most) {
      status = ResourceExhausted("gzip data of more than {} bytes", most);
      break;
    }
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      inflateReset(&stream);
    } else if (result != Z_OK || (stream.avail_in == 0 && stream.avail_out > 0)) {
      status = DataLoss("damaged gzip data ({})", stream.msg != nullptr ? stream.msg : "too short");
      break;
    }
  }
  inflateEnd(&stream);
  return status;
}

}  // namespace edl::data
