// The input is a part of a checkpoint. It is rejected with a message, or restored by a lane, which
// then serves requests and closes its rounds.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/check.h"
#include "checkpoint/part_file.h"
#include "ps/lane.h"
#include "ps/lane_checkpoint_reader.h"

namespace {

using edl::checkpoint::Chunk;
using edl::checkpoint::ChunkKind;

constexpr std::string_view kHead =
    R"({"format": 1, "first_bucket": 0, "end_bucket": 1024, "parameters": {
        "consistency": {"gradients": 2, "tolerance": 1},
        "tables": [{"name": "t", "dim": 2, "row_seed": 1, "optimizer": {"name": "Adagrad"}},
                   {"name": "u", "dim": 1, "row_seed": 2, "admit_after": 2}],
        "tensors": [{"name": "d", "size": 5, "optimizer": {"name": "Adam"}}]}})";

Chunk MakeChunk(ChunkKind kind, uint32_t index, uint64_t records, std::string_view content) {
  Chunk chunk{.kind = kind,
              .index = index,
              .records = records,
              .content = edl::wire::Buffer(content.size())};
  if (!content.empty()) std::memcpy(chunk.content.data(), content.data(), content.size());
  return chunk;
}

// Writes chunks with correct checksums. Each is encoded as kind, table or tensor, records (2
// bytes), length (2 bytes), content.
void WriteChunks(const std::string& path, std::string_view rest) {
  const auto writer = edl::checkpoint::PartWriter::Create(path);
  CHECK(writer.ok(), "{}", writer.status().message());
  CHECK((*writer)->Write(MakeChunk(ChunkKind::kHead, 0, 0, kHead)).ok(), "writing");
  while (rest.size() >= 6) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(rest[i]); };
    const size_t length = std::min<size_t>(byte(4) | byte(5) << 8, rest.size() - 6);
    const Chunk chunk = MakeChunk(static_cast<ChunkKind>(byte(0)), byte(1), byte(2) | byte(3) << 8,
                                  rest.substr(6, length));
    CHECK((*writer)->Write(chunk).ok(), "writing");
    rest.remove_prefix(6 + length);
  }
  CHECK((*writer)->Finish().ok(), "writing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string path = "/dev/shm/part-fuzz-" + std::to_string(getpid());
  if (data[0] == '\n') {
    WriteChunks(path, text.substr(1));
  } else {
    std::ofstream(path, std::ios::binary) << text;
  }
  edl::ps::Lane lane(edl::wire::Placement(1), edl::job::LaneInJob(0));
  edl::ps::LaneCheckpointReader reader(lane.state().buckets, edl::ps::RestoreMode::kResume);
  const auto part = edl::checkpoint::PartReader::Open(path);
  const edl::Status read = part.ok() ? reader.Read(**part) : part.status();
  unlink(path.c_str());
  if (!read.ok()) {
    CHECK(!read.message().empty(), "an error without a message");
    return 0;
  }
  auto restored = std::move(reader).Finish();
  if (!restored.ok()) {
    CHECK(!restored.status().message().empty(), "an error without a message");
    return 0;
  }
  lane.Adopt(*std::move(restored));
  lane.Flush();
  const auto opened = lane.Open(
      {.lease = edl::job::LeaseId(UINT64_MAX), .shard = {.ledger = edl::job::LedgerId(1)}});
  CHECK(opened.ok() || !opened.status().message().empty(), "an error without a message");
  return 0;
}
