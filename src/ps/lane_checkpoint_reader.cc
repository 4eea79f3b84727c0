#include "ps/lane_checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "ps/lane_checkpoint_format.h"
#include "wire/meta.h"

namespace edl::ps {
namespace {

using nlohmann::json;

std::string_view TextOf(const wire::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

std::vector<float> GetFloats(wire::MetaReader& reader, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = reader.Get<float>();
  return values;
}

template <typename Parameter>
Result<Parameter*> At(const std::vector<Parameter*>& parameters, const checkpoint::Chunk& chunk,
                      std::string_view kind) {
  if (chunk.index < parameters.size()) return parameters[chunk.index];
  return InvalidArgument("a chunk of kind {} is about {} {}, but the head has only {}",
                         static_cast<uint32_t>(chunk.kind), kind, chunk.index, parameters.size());
}

}  // namespace

Result<BucketRange> LaneCheckpointReader::BucketsOf(const checkpoint::Chunk& head) {
  EDL_ASSIGN_OR_RETURN(const json read, ParseJson(TextOf(head.content)));
  if (!read.is_object() || read.value("format", json()) != kLaneCheckpointFormat) {
    return DataLoss("its head does not have format {}", kLaneCheckpointFormat);
  }
  const json first = read.value("first_bucket", json());
  const json end = read.value("end_bucket", json());
  if (!first.is_number_unsigned() || !end.is_number_unsigned() ||
      end.get<uint64_t>() > wire::kBuckets || first.get<uint64_t>() >= end.get<uint64_t>()) {
    return DataLoss("its head has no valid range of buckets: first_bucket={}, end_bucket={}",
                    Dump(first), Dump(end));
  }
  return BucketRange{.first = first.get<wire::Bucket>(), .end = end.get<size_t>()};
}

Status LaneCheckpointReader::Read(checkpoint::PartReader& part) {
  BeginPart();
  while (true) {
    EDL_ASSIGN_OR_RETURN(const std::optional<checkpoint::Chunk> chunk, part.Next());
    if (!chunk.has_value()) return Ok();
    if (chunk->kind == checkpoint::ChunkKind::kHead) {
      const Result<BucketRange> range = BucketsOf(*chunk);
      if (range.ok() && !range->Overlaps(state_.buckets)) return Ok();
    }
    EDL_RETURN_IF_ERROR(Take(*chunk, part.path().native()));
  }
}

Status LaneCheckpointReader::Take(const checkpoint::Chunk& chunk, std::string_view path) {
  const Status status = TakeValid(chunk);
  if (status.ok() || status.code() == Code::kResourceExhausted) {
    return Status(status).Within(path);
  }
  // The checksum of the chunk is right, so its writer was wrong or used another format.
  return DataLoss("{}: {}", path, status.message());
}

Status LaneCheckpointReader::TakeValid(const checkpoint::Chunk& chunk) {
  if (part_.has_head == (chunk.kind == checkpoint::ChunkKind::kHead)) {
    return InvalidArgument("a part must start with its head, and have only one");
  }
  const bool resumes = mode_ == RestoreMode::kResume;
  switch (chunk.kind) {
    case checkpoint::ChunkKind::kHead:
      return TakeHead(chunk);
    case checkpoint::ChunkKind::kWatermarks:
      return resumes ? TakeWatermarks(chunk) : Ok();
    case checkpoint::ChunkKind::kSteps:
      return TakeSteps(chunk);
    case checkpoint::ChunkKind::kRows:
      return TakeRows(chunk);
    case checkpoint::ChunkKind::kCandidates:
      return TakeCandidates(chunk);
    case checkpoint::ChunkKind::kBlock:
      return TakeBlock(chunk);
    case checkpoint::ChunkKind::kRound:
      return resumes ? TakeRoundCounts(chunk) : Ok();
    case checkpoint::ChunkKind::kRoundRows:
      return resumes ? TakeRoundRows(chunk) : Ok();
    case checkpoint::ChunkKind::kRoundBlock:
      return resumes ? TakeRoundBlock(chunk) : Ok();
    case checkpoint::ChunkKind::kEnd:
      break;
  }
  return InvalidArgument("unknown kind of chunk: {}", static_cast<uint32_t>(chunk.kind));
}

Status LaneCheckpointReader::TakeHead(const checkpoint::Chunk& chunk) {
  EDL_ASSIGN_OR_RETURN(part_.buckets, BucketsOf(chunk));
  EDL_ASSIGN_OR_RETURN(const json head, ParseJson(TextOf(chunk.content)));
  EDL_ASSIGN_OR_RETURN(const Declaration declaration,
                       ParseDeclaration(Dump(head.value("parameters", json()))));
  EDL_ASSIGN_OR_RETURN(part_.declared, state_.Add(declaration));
  state_.parameters.ReopenConsistency();
  parts_.push_back(part_.buckets);
  part_.has_head = true;
  return Ok();
}

Status LaneCheckpointReader::TakeWatermarks(const checkpoint::Chunk& chunk) {
  wire::MetaReader reader(chunk.content.bytes());
  state_.watermarks.RaiseFloor(reader.Get<job::LeaseId>());
  for (uint64_t i = 0; i < chunk.records && reader.ok(); ++i) {
    const auto first = reader.Get<uint32_t>();
    Watermarks::Entry entry{.first = static_cast<wire::Bucket>(first)};
    entry.end = reader.Get<uint32_t>();
    entry.shard.ledger = reader.Get<job::LedgerId>();
    entry.shard.dataset = reader.Get<job::DatasetId>();
    entry.shard.generation = reader.Get<uint32_t>();
    entry.shard.epoch = reader.Get<uint32_t>();
    entry.shard.ordinal = reader.Get<uint64_t>();
    entry.lease = reader.Get<job::LeaseId>();
    entry.watermark = reader.Get<uint64_t>();
    if (!reader.ok() || first > entry.end || entry.end > wire::kBuckets) break;
    state_.watermarks.Restore(entry);
  }
  if (reader.AtEnd()) return Ok();
  return InvalidArgument("its chunk of watermarks is invalid: {} records in {} bytes",
                         chunk.records, chunk.content.size());
}

Status LaneCheckpointReader::TakeSteps(const checkpoint::Chunk& chunk) {
  const size_t count = chunk.content.size() / sizeof(uint64_t);
  if (count != chunk.records || part_.buckets.first + count > wire::kBuckets) {
    return InvalidArgument("its chunk of step counts is invalid: {} records in {} bytes",
                           chunk.records, chunk.content.size());
  }
  for (size_t i = 0; i < count; ++i) {
    const auto bucket = static_cast<wire::Bucket>(part_.buckets.first + i);
    if (!Owns(bucket)) continue;
    uint64_t steps = 0;
    std::memcpy(&steps, chunk.content.data() + i * sizeof(uint64_t), sizeof(uint64_t));
    state_.steps.Restore(bucket, steps);
  }
  return Ok();
}

Result<Table*> LaneCheckpointReader::TableOf(const checkpoint::Chunk& chunk) const {
  return At(part_.declared.tables, chunk, "table");
}

Result<TensorBlocks*> LaneCheckpointReader::TensorOf(const checkpoint::Chunk& chunk) const {
  return At(part_.declared.tensors, chunk, "tensor");
}

Status LaneCheckpointReader::TakeRows(const checkpoint::Chunk& chunk) {
  EDL_ASSIGN_OR_RETURN(Table* const table, TableOf(chunk));
  const size_t row_bytes = table->row_bytes();
  if (chunk.records != chunk.content.size() / row_bytes || chunk.content.size() % row_bytes != 0) {
    return InvalidArgument("{} rows of table '{}' cannot have {} bytes: a row has {}",
                           chunk.records, table->spec().name, chunk.content.size(), row_bytes);
  }
  const std::byte* record = chunk.content.data();
  for (uint64_t i = 0; i < chunk.records; ++i, record += row_bytes) {
    if (!Owns(wire::BucketOf(Table::IdOfRecord(record)))) continue;
    EDL_RETURN_IF_ERROR(table->Restore(record));
  }
  return Ok();
}

Status LaneCheckpointReader::TakeCandidates(const checkpoint::Chunk& chunk) {
  EDL_ASSIGN_OR_RETURN(Table* const table, TableOf(chunk));
  Candidates* const candidates = table->candidates();
  if (candidates == nullptr || chunk.content.size() % Candidates::kRecordBytes != 0) {
    return InvalidArgument(
        "{} bytes of candidates for table '{}', whose admit_after is {}: a candidate has {} bytes",
        chunk.content.size(), table->spec().name, table->spec().admit_after,
        Candidates::kRecordBytes);
  }
  for (size_t at = 0; at < chunk.content.size(); at += Candidates::kRecordBytes) {
    const std::byte* const record = chunk.content.data() + at;
    if (!Owns(wire::BucketOf(Table::IdOfRecord(record)))) continue;
    EDL_RETURN_IF_ERROR(candidates->Restore(record));
  }
  return Ok();
}

Status LaneCheckpointReader::TakeBlock(const checkpoint::Chunk& chunk) {
  EDL_ASSIGN_OR_RETURN(TensorBlocks* const tensor, TensorOf(chunk));
  if (!Owns(wire::BucketOfBlock(tensor->spec().name, chunk.records))) return Ok();
  return tensor->Restore(chunk.records, chunk.content.bytes());
}

Status LaneCheckpointReader::TakeRoundCounts(const checkpoint::Chunk& chunk) {
  wire::MetaReader reader(chunk.content.bytes());
  for (uint64_t i = 0; i < chunk.records && reader.ok(); ++i) {
    const auto contributors = reader.Get<uint32_t>();
    const auto contributed = reader.Get<uint64_t>();
    const size_t bucket = part_.buckets.first + i;
    if (bucket >= wire::kBuckets) break;
    if (Owns(bucket)) {
      state_.rounds.RestoreCounts(static_cast<wire::Bucket>(bucket), contributors, contributed);
    }
  }
  if (reader.AtEnd()) return Ok();
  return InvalidArgument("its chunk of open rounds is invalid: {} records in {} bytes",
                         chunk.records, chunk.content.size());
}

Status LaneCheckpointReader::TakeRoundRows(const checkpoint::Chunk& chunk) {
  EDL_ASSIGN_OR_RETURN(Table* const table, TableOf(chunk));
  const size_t dim = table->spec().dim;
  wire::MetaReader reader(chunk.content.bytes());
  const auto learning_rate = reader.Get<float>();
  for (uint64_t i = 0; i < chunk.records && reader.ok(); ++i) {
    const auto id = reader.Get<int64_t>();
    if (reader.left() < dim * sizeof(float)) break;
    const std::vector<float> gradient = GetFloats(reader, dim);
    if (Owns(wire::BucketOf(id))) state_.rounds.AddRow(*table, id, gradient.data(), learning_rate);
  }
  if (reader.AtEnd()) return Ok();
  return InvalidArgument("its open round of table '{}' is invalid: {} records in {} bytes",
                         table->spec().name, chunk.records, chunk.content.size());
}

Status LaneCheckpointReader::TakeRoundBlock(const checkpoint::Chunk& chunk) {
  EDL_ASSIGN_OR_RETURN(TensorBlocks* const tensor, TensorOf(chunk));
  SynchronousRounds::Blocks& blocks = state_.rounds.BlocksOf(*tensor);
  float* values = blocks.gradients.data();
  for (const TensorBlocks::Block& block : tensor->blocks()) {
    if (block.number == chunk.records) {
      if (chunk.content.size() != (block.values + 1) * sizeof(float)) {
        return InvalidArgument("the open round of block {} of tensor '{}' has {} bytes, not {}",
                               block.number, tensor->spec().name, chunk.content.size(),
                               (block.values + 1) * sizeof(float));
      }
      wire::MetaReader reader(chunk.content.bytes());
      blocks.learning_rate = reader.Get<float>();
      std::ranges::copy(GetFloats(reader, block.values), values);
      return Ok();
    }
    values += block.values;
  }
  return Ok();  // the block belongs to another lane
}

Result<LaneState> LaneCheckpointReader::Finish(Coverage coverage) && {
  state_.watermarks.Settle();
  state_.steps.Settle();
  if (coverage == Coverage::kEmptyCheckpoint) return std::move(state_);
  std::vector<int> parts(wire::kBuckets);
  for (const BucketRange& range : parts_) {
    for (size_t bucket = range.first; bucket < range.end; ++bucket) ++parts[bucket];
  }
  for (size_t bucket = state_.buckets.first; bucket < state_.buckets.end; ++bucket) {
    if (parts[bucket] == 1) continue;
    return DataLoss(
        "bucket {} is in {} parts of the checkpoint, and must be in one: {}", bucket, parts[bucket],
        parts[bucket] == 0 ? "a part is missing" : "parts of two checkpoints are mixed");
  }
  return std::move(state_);
}

}  // namespace edl::ps
