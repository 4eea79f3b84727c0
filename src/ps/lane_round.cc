// Synchronous rounds of a lane: docs/formats/parameters.md, consistency.

#include <algorithm>
#include <cstring>
#include <utility>

#include "ps/lane.h"
#include "wire/meta.h"

namespace edl::ps {
namespace {

// Rows of a round go into chunks of about so many bytes.
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

std::vector<float> GetFloats(wire::MetaReader& reader, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = reader.Get<float>();
  return values;
}

}  // namespace

bool Lane::IsStale(const wire::Push& push) const {
  return InRounds() && push.version != wire::Push::kNoVersion && version_ > push.version &&
         version_ - push.version > consistency_.tolerance;
}

float Lane::ShareOfRate(const wire::Push& push) const {
  if (!consistency_.modulate || push.version == wire::Push::kNoVersion) return 1;
  return 1.0F / static_cast<float>(version_ > push.version ? version_ - push.version : 1);
}

void Lane::Contribute(const TablePush& push, const Watermarks::BatchCheck& verdict) {
  const size_t dim = push.table->spec().dim;
  for (size_t i = 0; i < push.ids.size(); ++i) {
    const wire::Bucket bucket = wire::BucketOf(push.ids[i]);
    if (!Owns(bucket) || !Takes(verdict, bucket)) continue;
    round_.Add(*push.table, push.ids[i], push.gradients + i * dim, push.learning_rate);
  }
}

void Lane::CloseRounds(uint32_t gradients) {
  std::vector<bool> full(end_ - first_);
  for (size_t i = 0; i < full.size(); ++i) {
    full[i] = round_.contributors(static_cast<wire::Bucket>(first_ + i)) >= gradients;
  }
  const auto closes = [&](wire::Bucket bucket) { return Owns(bucket) && full[bucket - first_]; };
  if (std::ranges::find(full, true) == full.end()) return;
  Watermarks::BatchCheck closing;
  if (std::ranges::find(full, false) != full.end()) closing.lacked = full;
  CountSteps(closing);
  for (auto& [table, rows] : round_.rows()) {
    Apply(TablePush{table, rows.ids, rows.gradients.data(), rows.learning_rate}, closing);
  }
  for (auto& [tensor, blocks] : round_.blocks()) {
    const std::vector<float> average = round_.Average(*tensor, closes);
    Apply(TensorPush{tensor, average.data(), blocks.learning_rate}, closing);
  }
  round_.Clear(closes);
}

void Lane::Flush() {
  if (InRounds()) CloseRounds(1);
}

std::pair<uint64_t, uint64_t> Lane::Contributed() const {
  std::pair<uint64_t, uint64_t> seen{UINT64_MAX, 0};
  for (size_t bucket = first_; bucket < end_; ++bucket) {
    const uint64_t contributed = round_.contributed(static_cast<wire::Bucket>(bucket));
    seen = {std::min(seen.first, contributed), std::max(seen.second, contributed)};
  }
  return seen;
}

// An open round is small, a few batches, and goes into the save at once.
void Lane::SaveRound() {
  wire::MetaWriter counts;
  for (size_t bucket = first_; bucket < end_; ++bucket) {
    counts.Add(round_.contributors(static_cast<wire::Bucket>(bucket)));
    counts.Add(round_.contributed(static_cast<wire::Bucket>(bucket)));
  }
  saving_->give({.kind = checkpoint::ChunkKind::kRound,
                 .records = end_ - first_,
                 .content = wire::BufferOf(std::move(counts).text())});
  for (uint32_t index = 0; index < saving_->tables.size(); ++index) {
    const auto found = round_.rows().find(saving_->tables[index]);
    if (found == round_.rows().end() || found->second.ids.empty()) continue;
    const Round::Rows& rows = found->second;
    const size_t dim = saving_->tables[index]->spec().dim;
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
      saving_->give({.kind = checkpoint::ChunkKind::kRoundRows,
                     .index = index,
                     .records = count,
                     .content = std::move(writer).Take()});
    }
  }
  for (uint32_t index = 0; index < saving_->tensors.size(); ++index) {
    const auto found = round_.blocks().find(saving_->tensors[index]);
    if (found == round_.blocks().end()) continue;
    const float* values = found->second.gradients.data();
    for (const TensorShare::Block& block : saving_->tensors[index]->blocks()) {
      BufferWriter writer((1 + block.values) * sizeof(float));
      writer.Add(&found->second.learning_rate, 1);
      writer.Add(values, block.values);
      values += block.values;
      saving_->give({.kind = checkpoint::ChunkKind::kRoundBlock,
                     .index = index,
                     .records = block.number,
                     .content = std::move(writer).Take()});
    }
  }
}

Status Lane::RestoreRound(const checkpoint::Chunk& chunk, const PartRestore& part) {
  wire::MetaReader reader(chunk.content.bytes());
  for (uint64_t i = 0; i < chunk.records && reader.ok(); ++i) {
    const auto contributors = reader.Get<uint32_t>();
    const auto contributed = reader.Get<uint64_t>();
    const size_t bucket = part.range.first + i;
    if (bucket >= wire::kBuckets) break;
    if (Owns(static_cast<wire::Bucket>(bucket))) {
      round_.Restore(static_cast<wire::Bucket>(bucket), contributors, contributed);
    }
  }
  if (reader.AtEnd()) return Ok();
  return InvalidArgument("its rounds are of other buckets");
}

Status Lane::RestoreRoundRows(const checkpoint::Chunk& chunk, const PartRestore& part) {
  if (chunk.index >= part.names.tables.size()) {
    return InvalidArgument("a round of table {}, which its head does not have", chunk.index);
  }
  Table& table = *part.names.tables[chunk.index];
  wire::MetaReader reader(chunk.content.bytes());
  const auto learning_rate = reader.Get<float>();
  for (uint64_t i = 0; i < chunk.records && reader.ok(); ++i) {
    const auto id = reader.Get<int64_t>();
    if (reader.left() < table.spec().dim * sizeof(float)) break;
    const std::vector<float> gradient = GetFloats(reader, table.spec().dim);
    if (Owns(wire::BucketOf(id))) round_.Add(table, id, gradient.data(), learning_rate);
  }
  if (reader.AtEnd()) return Ok();
  return InvalidArgument("its round of table '{}' has another length", table.spec().name);
}

Status Lane::RestoreRoundBlock(const checkpoint::Chunk& chunk, const PartRestore& part) {
  if (chunk.index >= part.names.tensors.size()) {
    return InvalidArgument("a round of tensor {}, which its head does not have", chunk.index);
  }
  TensorShare& tensor = *part.names.tensors[chunk.index];
  Round::Blocks& blocks = round_.BlocksOf(tensor);
  float* values = blocks.gradients.data();
  for (const TensorShare::Block& block : tensor.blocks()) {
    if (block.number == chunk.records) {
      if (chunk.content.size() != (block.values + 1) * sizeof(float)) {
        return InvalidArgument("its round of tensor '{}' has another length", tensor.spec().name);
      }
      wire::MetaReader reader(chunk.content.bytes());
      blocks.learning_rate = reader.Get<float>();
      std::ranges::copy(GetFloats(reader, block.values), values);
      return Ok();
    }
    values += block.values;
  }
  return Ok();  // another lane's
}

}  // namespace edl::ps
