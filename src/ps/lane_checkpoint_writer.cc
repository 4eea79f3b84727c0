#include "ps/lane_checkpoint_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "ps/lane_checkpoint_format.h"
#include "wire/meta.h"

namespace edl::ps {
namespace {

using nlohmann::json;

// The rows of a round are split into chunks of about this size.
constexpr size_t kRoundChunkBytes = size_t{16} << 20;

// Fills a buffer of known size. Confined.
class BufferWriter {
 public:
  explicit BufferWriter(size_t size) : buffer_(size), at_(buffer_.data()) {}

  template <typename Value>
  void Add(const Value* values, size_t count) {
    std::memcpy(at_, values, count * sizeof(Value));
    at_ += count * sizeof(Value);
  }
  wire::Buffer Take() && { return std::move(buffer_); }

 private:
  wire::Buffer buffer_;
  std::byte* at_;
};

checkpoint::Chunk WatermarksChunk(const Watermarks& watermarks) {
  wire::MetaWriter writer;
  writer.Add(watermarks.floor());
  const std::vector<Watermarks::Entry> entries = watermarks.Entries();
  for (const Watermarks::Entry& entry : entries) {
    writer.Add(static_cast<uint32_t>(entry.first));
    writer.Add(static_cast<uint32_t>(entry.end));
    writer.Add(entry.shard.ledger);
    writer.Add(entry.shard.dataset);
    writer.Add(entry.shard.generation);
    writer.Add(entry.shard.epoch);
    writer.Add(entry.shard.ordinal);
    writer.Add(entry.lease);
    writer.Add(entry.watermark);
  }
  return {.kind = checkpoint::ChunkKind::kWatermarks,
          .records = entries.size(),
          .content = wire::BufferOf(std::move(writer).text())};
}

}  // namespace

LaneCheckpointWriter::LaneCheckpointWriter(LaneState& state, GiveChunk give,
                                           RecordCollector::Reuse reuse)
    : state_(state), give_(std::move(give)), reuse_(std::move(reuse)) {
  BeginParameters();
  GiveHead();
  give_(WatermarksChunk(state_.watermarks));
  GiveSteps();
  if (state_.parameters.in_rounds()) GiveRounds();
}

LaneCheckpointWriter::~LaneCheckpointWriter() { End(LaneParameters::SaveEnd::kCancelled); }

RecordCollector* LaneCheckpointWriter::MakeCollector(checkpoint::ChunkKind kind, uint32_t index,
                                                     size_t record_bytes) {
  const auto give = [this, kind, index](wire::Buffer chunk, size_t records) {
    give_({.kind = kind, .index = index, .records = records, .content = std::move(chunk)});
  };
  collectors_.push_back(std::make_unique<RecordCollector>(record_bytes, give, reuse_));
  return collectors_.back().get();
}

void LaneCheckpointWriter::BeginParameters() {
  const SaveNumber save = state_.parameters.BeginSave();
  for (const auto& [name, table] : state_.parameters.tables()) {
    const auto index = static_cast<uint32_t>(tables_.size());
    tables_.push_back(table.get());
    table->BeginSave(save, MakeCollector(checkpoint::ChunkKind::kRows, index, table->row_bytes()));
    if (Candidates* const candidates = table->candidates()) {
      candidates->BeginSave(
          save, MakeCollector(checkpoint::ChunkKind::kCandidates, index, Candidates::kRecordBytes));
    }
  }
  for (const auto& [name, tensor] : state_.parameters.tensors()) {
    const auto index = static_cast<uint32_t>(tensors_.size());
    tensors_.push_back(tensor.get());
    tensor->BeginSave(save, [this, index](const TensorBlocks::Block& block) {
      wire::Buffer content(block.memory.size());
      std::memcpy(content.data(), block.memory.data(), content.size());
      give_({.kind = checkpoint::ChunkKind::kBlock,
             .index = index,
             .records = block.number,
             .content = std::move(content)});
    });
  }
}

void LaneCheckpointWriter::GiveHead() {
  Declaration declaration{.consistency = state_.parameters.consistency()};
  for (const Table* const table : tables_) declaration.tables.push_back(table->spec());
  for (const TensorBlocks* const tensor : tensors_) declaration.tensors.push_back(tensor->spec());
  const json head = {{"format", kLaneCheckpointFormat},
                     {"first_bucket", state_.buckets.first},
                     {"end_bucket", state_.buckets.end},
                     {"parameters", ReadJson(ToText(declaration))}};
  give_({.kind = checkpoint::ChunkKind::kHead, .content = wire::BufferOf(Dump(head))});
}

void LaneCheckpointWriter::GiveSteps() {
  const std::span<const uint64_t> counts = state_.steps.counts();
  wire::Buffer content(counts.size_bytes());
  std::memcpy(content.data(), counts.data(), counts.size_bytes());
  give_({.kind = checkpoint::ChunkKind::kSteps,
         .records = counts.size(),
         .content = std::move(content)});
}

// Open rounds are small, a few batches, so they are given at once.
void LaneCheckpointWriter::GiveRounds() {
  wire::MetaWriter counts;
  for (size_t bucket = state_.buckets.first; bucket < state_.buckets.end; ++bucket) {
    counts.Add(state_.rounds.contributors(bucket));
    counts.Add(state_.rounds.contributed(bucket));
  }
  give_({.kind = checkpoint::ChunkKind::kRound,
         .records = state_.buckets.size(),
         .content = wire::BufferOf(std::move(counts).text())});
  for (uint32_t index = 0; index < tables_.size(); ++index) {
    if (const auto* const rows = state_.rounds.FindRows(*tables_[index])) {
      GiveRoundRows(index, *rows);
    }
  }
  for (uint32_t index = 0; index < tensors_.size(); ++index) {
    if (const auto* const blocks = state_.rounds.FindBlocks(*tensors_[index])) {
      GiveRoundBlocks(index, *blocks);
    }
  }
}

void LaneCheckpointWriter::GiveRoundRows(uint32_t index, const SynchronousRounds::Rows& rows) {
  const size_t dim = tables_[index]->spec().dim;
  const size_t row_bytes = sizeof(int64_t) + dim * sizeof(float);
  const size_t most = std::max<size_t>(kRoundChunkBytes / row_bytes, 1);
  for (size_t first = 0; first < rows.ids.size(); first += most) {
    const size_t count = std::min(most, rows.ids.size() - first);
    BufferWriter writer(sizeof(rows.learning_rate) + count * row_bytes);
    writer.Add(&rows.learning_rate, 1);
    for (size_t i = first; i < first + count; ++i) {
      writer.Add(&rows.ids[i], 1);
      writer.Add(rows.gradients.data() + i * dim, dim);
    }
    give_({.kind = checkpoint::ChunkKind::kRoundRows,
           .index = index,
           .records = count,
           .content = std::move(writer).Take()});
  }
}

void LaneCheckpointWriter::GiveRoundBlocks(uint32_t index,
                                           const SynchronousRounds::Blocks& blocks) {
  const float* values = blocks.gradients.data();
  for (const TensorBlocks::Block& block : tensors_[index]->blocks()) {
    BufferWriter writer((1 + block.values) * sizeof(float));
    writer.Add(&blocks.learning_rate, 1);
    writer.Add(values, block.values);
    values += block.values;
    give_({.kind = checkpoint::ChunkKind::kRoundBlock,
           .index = index,
           .records = block.number,
           .content = std::move(writer).Take()});
  }
}

bool LaneCheckpointWriter::SaveSome(const std::function<bool()>& is_enough) {
  // Blocks first: every push changes all of them, and would have to copy them at once.
  for (; tensors_done_ < tensors_.size(); ++tensors_done_) {
    if (tensors_[tensors_done_]->SaveSome(is_enough)) return true;
  }
  for (; tables_done_ < tables_.size(); ++tables_done_) {
    Table& table = *tables_[tables_done_];
    if (table.SaveSome(is_enough)) return true;
    if (table.candidates() != nullptr && table.candidates()->SaveSome(is_enough)) return true;
  }
  for (const auto& collector : collectors_) collector->End();
  End(LaneParameters::SaveEnd::kComplete);
  return false;
}

size_t LaneCheckpointWriter::BlockBytesToSave() const {
  size_t sum = 0;
  for (size_t i = tensors_done_; i < tensors_.size(); ++i) sum += tensors_[i]->BytesToSave();
  return sum;
}

void LaneCheckpointWriter::End(LaneParameters::SaveEnd end) {
  if (std::exchange(ended_, true)) return;
  for (Table* const table : tables_) {
    table->EndSave();
    if (table->candidates() != nullptr) table->candidates()->EndSave();
  }
  for (TensorBlocks* const tensor : tensors_) tensor->EndSave();
  state_.parameters.EndSave(end);
}

}  // namespace edl::ps
