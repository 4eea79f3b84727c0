// How a lane saves itself and is restored: docs/formats/checkpoint.md.

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "ps/lane.h"
#include "wire/meta.h"

namespace edl::ps {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr int kMostGivenUp = 200;
static_assert(kMostGivenUp < std::numeric_limits<SaveNumber>::max() - 1);

std::string_view TextOf(const wire::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

checkpoint::Chunk MarksChunk(const Watermarks& marks) {
  wire::MetaWriter writer;
  writer.Add(marks.floor());
  const std::vector<Watermarks::Entry> entries = marks.Entries();
  for (const Watermarks::Entry& entry : entries) {
    writer.Add(static_cast<uint32_t>(entry.first));
    writer.Add(static_cast<uint32_t>(entry.end));
    writer.Add(entry.shard.ledger);
    writer.Add(entry.shard.dataset);
    writer.Add(entry.shard.generation);
    writer.Add(entry.shard.epoch);
    writer.Add(entry.shard.ordinal);
    writer.Add(entry.lease);
    writer.Add(entry.mark);
  }
  return {.kind = checkpoint::ChunkKind::kMarks,
          .records = entries.size(),
          .content = wire::BufferOf(std::move(writer).text())};
}

}  // namespace

RecordCollector* Lane::MakeCollector(checkpoint::ChunkKind kind, uint32_t index,
                                     size_t record_bytes) {
  const auto give = [this, kind, index](wire::Buffer chunk, size_t records) {
    saving_->give({.kind = kind, .index = index, .records = records, .content = std::move(chunk)});
  };
  saving_->collectors.push_back(
      std::make_unique<RecordCollector>(record_bytes, give, saving_->reuse));
  return saving_->collectors.back().get();
}

void Lane::BeginSave(GiveChunk give, RecordCollector::Reuse reuse) {
  CHECK(!saving(), "a save is under way");
  saving_ = std::make_unique<Saving>();
  saving_->give = std::move(give);
  saving_->reuse = std::move(reuse);
  // A number that rows still have from long ago would count them as saved. It takes so many saves
  // in a row that were given up, and then a pass over all rows.
  if (++saves_given_up_ > kMostGivenUp) {
    for (const auto& [name, table] : tables_) {
      table->Renumber();
      if (table->candidates() != nullptr) table->candidates()->Renumber();
    }
    for (const auto& [name, tensor] : tensors_) tensor->Renumber();
    saves_given_up_ = 0;
  }
  ++save_;
  Declaration declaration{.consistency = consistency_};
  for (const auto& [name, table] : tables_) {
    const auto index = static_cast<uint32_t>(saving_->tables.size());
    declaration.tables.push_back(table->spec());
    saving_->tables.push_back(table.get());
    table->BeginSave(save_, MakeCollector(checkpoint::ChunkKind::kRows, index, table->row_bytes()));
    if (Candidates* const candidates = table->candidates()) {
      candidates->BeginSave(save_, MakeCollector(checkpoint::ChunkKind::kCandidates, index,
                                                 Candidates::kRecordBytes));
    }
  }
  for (const auto& [name, tensor] : tensors_) {
    const auto index = static_cast<uint32_t>(saving_->tensors.size());
    declaration.tensors.push_back(tensor->spec());
    saving_->tensors.push_back(tensor.get());
    tensor->BeginSave(save_, [this, index](const TensorShare::Block& block) {
      wire::Buffer content(block.memory.size());
      std::memcpy(content.data(), block.memory.data(), content.size());
      saving_->give({.kind = checkpoint::ChunkKind::kBlock,
                     .index = index,
                     .records = block.number,
                     .content = std::move(content)});
    });
  }
  const json head = {{"format", kFormat},
                     {"first_bucket", first_},
                     {"end_bucket", end_},
                     {"parameters", ReadJson(ToText(declaration))}};
  saving_->give({.kind = checkpoint::ChunkKind::kHead, .content = wire::BufferOf(Dump(head))});
  saving_->give(MarksChunk(watermarks_));
  wire::Buffer steps((end_ - first_) * sizeof(uint64_t));
  std::memcpy(steps.data(), &steps_[first_], steps.size());
  saving_->give({.kind = checkpoint::ChunkKind::kSteps,
                 .records = end_ - first_,
                 .content = std::move(steps)});
  if (InRounds()) SaveRound();
}

bool Lane::SaveSome(const std::function<bool()>& is_enough) {
  Saving& saving = *saving_;
  // Blocks first: every push changes all of them, and would have to copy them at once.
  for (; saving.tensors_done < saving.tensors.size(); ++saving.tensors_done) {
    if (saving.tensors[saving.tensors_done]->SaveSome(is_enough)) return true;
  }
  for (; saving.tables_done < saving.tables.size(); ++saving.tables_done) {
    Table& table = *saving.tables[saving.tables_done];
    if (table.SaveSome(is_enough)) return true;
    if (table.candidates() != nullptr && table.candidates()->SaveSome(is_enough)) return true;
  }
  for (const auto& collector : saving.collectors) collector->End();
  saves_given_up_ = 0;
  EndSave();
  return false;
}

size_t Lane::BlockBytesToSave() const {
  if (!saving()) return 0;
  size_t sum = 0;
  for (size_t i = saving_->tensors_done; i < saving_->tensors.size(); ++i) {
    sum += saving_->tensors[i]->BytesToSave();
  }
  return sum;
}

void Lane::EndSave() {
  if (!saving()) return;
  for (Table* const table : saving_->tables) {
    table->EndSave();
    if (table->candidates() != nullptr) table->candidates()->EndSave();
  }
  for (TensorShare* const tensor : saving_->tensors) tensor->EndSave();
  saving_.reset();
}

Status Lane::Restore(checkpoint::PartReader& part, bool with_marks) {
  PartRestore restore{.with_marks = with_marks};
  while (true) {
    EDL_ASSIGN_OR_RETURN(const std::optional<checkpoint::Chunk> chunk, part.Next());
    if (!chunk.has_value()) return Ok();
    if (chunk->kind == checkpoint::ChunkKind::kHead) {
      const Result<BucketRange> range = RangeOf(*chunk);
      if (range.ok() && (range->first >= end_ || range->end <= first_)) return Ok();
    }
    EDL_RETURN_IF_ERROR(Take(*chunk, restore, part.path().native()));
  }
}

Status Lane::Take(const checkpoint::Chunk& chunk, PartRestore& part, std::string_view path) {
  const Status status = RestoreChunk(chunk, part);
  if (status.ok() || status.code() == Code::kResourceExhausted) {
    return Status(status).Within(path);
  }
  // Its checksums are right, so who wrote it was wrong, or speaks another format.
  return DataLoss("{}: {}", path, status.message());
}

Status Lane::RestoreChunk(const checkpoint::Chunk& chunk, PartRestore& part) {
  if (part.has_head == (chunk.kind == checkpoint::ChunkKind::kHead)) {
    return InvalidArgument("its head is not its first chunk, or not its only one");
  }
  switch (chunk.kind) {
    case checkpoint::ChunkKind::kHead:
      return RestoreHead(chunk, part);
    case checkpoint::ChunkKind::kMarks:
      return part.with_marks ? RestoreMarks(chunk) : Ok();
    case checkpoint::ChunkKind::kSteps:
      return RestoreSteps(chunk, part);
    case checkpoint::ChunkKind::kRows:
      return RestoreRows(chunk, part);
    case checkpoint::ChunkKind::kCandidates:
      return RestoreCandidates(chunk, part);
    case checkpoint::ChunkKind::kBlock:
      return RestoreBlock(chunk, part);
    case checkpoint::ChunkKind::kRound:
      return part.with_marks ? RestoreRound(chunk, part) : Ok();
    case checkpoint::ChunkKind::kRoundRows:
      return part.with_marks ? RestoreRoundRows(chunk, part) : Ok();
    case checkpoint::ChunkKind::kRoundBlock:
      return part.with_marks ? RestoreRoundBlock(chunk, part) : Ok();
    case checkpoint::ChunkKind::kEnd:
      break;
  }
  return InvalidArgument("a chunk of kind {}", static_cast<uint32_t>(chunk.kind));
}

Result<Lane::BucketRange> Lane::RangeOf(const checkpoint::Chunk& head) {
  EDL_ASSIGN_OR_RETURN(const json read, ParseJson(TextOf(head.content)));
  if (!read.is_object() || read.value("format", json()) != kFormat) {
    return DataLoss("it is not of format {}", kFormat);
  }
  const json first = read.value("first_bucket", json());
  const json end = read.value("end_bucket", json());
  if (!first.is_number_unsigned() || !end.is_number_unsigned() ||
      end.get<uint64_t>() > wire::kBuckets || first.get<uint64_t>() >= end.get<uint64_t>()) {
    return DataLoss("its head names no buckets");
  }
  return BucketRange{.first = first.get<size_t>(), .end = end.get<size_t>()};
}

Status Lane::RestoreHead(const checkpoint::Chunk& chunk, PartRestore& part) {
  EDL_ASSIGN_OR_RETURN(part.range, RangeOf(chunk));
  EDL_ASSIGN_OR_RETURN(const json head, ParseJson(TextOf(chunk.content)));
  EDL_ASSIGN_OR_RETURN(const Declaration declaration,
                       ParseDeclaration(Dump(head.value("parameters", json()))));
  EDL_ASSIGN_OR_RETURN(part.names, Add(declaration));
  declared_.reset();  // workers may declare another consistency than those who saved
  restored_.push_back(part.range);
  part.has_head = true;
  return Ok();
}

Status Lane::RestoreMarks(const checkpoint::Chunk& chunk) {
  wire::MetaReader reader(chunk.content.bytes());
  watermarks_.RaiseFloor(reader.Get<uint64_t>());
  for (uint64_t i = 0; i < chunk.records && reader.ok(); ++i) {
    const auto first = reader.Get<uint32_t>();
    Watermarks::Entry entry{.first = static_cast<wire::Bucket>(first)};
    entry.end = reader.Get<uint32_t>();
    entry.shard.ledger = reader.Get<uint64_t>();
    entry.shard.dataset = reader.Get<uint64_t>();
    entry.shard.generation = reader.Get<uint32_t>();
    entry.shard.epoch = reader.Get<uint32_t>();
    entry.shard.ordinal = reader.Get<uint64_t>();
    entry.lease = reader.Get<uint64_t>();
    entry.mark = reader.Get<uint64_t>();
    if (!reader.ok() || first > entry.end || entry.end > wire::kBuckets) break;
    watermarks_.Restore(entry);
  }
  if (reader.AtEnd()) return Ok();
  return InvalidArgument("its marks are none");
}

Status Lane::RestoreSteps(const checkpoint::Chunk& chunk, const PartRestore& part) {
  const size_t count = chunk.content.size() / sizeof(uint64_t);
  if (count != chunk.records || part.range.first + count > wire::kBuckets) {
    return InvalidArgument("its steps are of {} buckets", count);
  }
  for (size_t i = 0; i < count; ++i) {
    const auto bucket = static_cast<wire::Bucket>(part.range.first + i);
    if (!Owns(bucket)) continue;
    std::memcpy(&steps_[bucket], chunk.content.data() + i * sizeof(uint64_t), sizeof(uint64_t));
  }
  return Ok();
}

Status Lane::RestoreRows(const checkpoint::Chunk& chunk, const PartRestore& part) {
  if (chunk.index >= part.names.tables.size()) {
    return InvalidArgument("rows of table {}, which its head does not have", chunk.index);
  }
  Table& table = *part.names.tables[chunk.index];
  if (chunk.records != chunk.content.size() / table.row_bytes() ||
      chunk.content.size() % table.row_bytes() != 0) {
    return InvalidArgument("{} bytes for {} rows of table '{}'", chunk.content.size(),
                           chunk.records, table.spec().name);
  }
  const std::byte* record = chunk.content.data();
  for (uint64_t i = 0; i < chunk.records; ++i, record += table.row_bytes()) {
    if (!Owns(wire::BucketOf(Table::IdOfRecord(record)))) continue;
    EDL_RETURN_IF_ERROR(table.Restore(record));
  }
  return Ok();
}

Status Lane::RestoreCandidates(const checkpoint::Chunk& chunk, const PartRestore& part) {
  if (chunk.index >= part.names.tables.size()) {
    return InvalidArgument("candidates of table {}, which its head does not have", chunk.index);
  }
  Candidates* const candidates = part.names.tables[chunk.index]->candidates();
  if (candidates == nullptr || chunk.content.size() % Candidates::kRecordBytes != 0) {
    return InvalidArgument("{} bytes of candidates for a table that has none",
                           chunk.content.size());
  }
  for (size_t at = 0; at < chunk.content.size(); at += Candidates::kRecordBytes) {
    const std::byte* const record = chunk.content.data() + at;
    if (!Owns(wire::BucketOf(Table::IdOfRecord(record)))) continue;
    EDL_RETURN_IF_ERROR(candidates->Restore(record));
  }
  return Ok();
}

Status Lane::RestoreBlock(const checkpoint::Chunk& chunk, const PartRestore& part) {
  if (chunk.index >= part.names.tensors.size()) {
    return InvalidArgument("a block of tensor {}, which its head does not have", chunk.index);
  }
  TensorShare& tensor = *part.names.tensors[chunk.index];
  if (!Owns(wire::BucketOfBlock(tensor.spec().name, chunk.records))) return Ok();
  return tensor.Restore(chunk.records, chunk.content.bytes());
}

std::unique_ptr<Lane> Lane::MakeEmpty() const {
  auto lane = std::make_unique<Lane>(placement_, place_);
  lane->save_ = save_;
  lane->saves_given_up_ = saves_given_up_;
  return lane;
}

void Lane::Adopt(Lane&& other) {
  CHECK(!saving(), "a save is under way");
  CHECK(other.save_ == save_, "a lane of save {} takes over one of save {}", save_, other.save_);
  tables_ = std::move(other.tables_);
  tensors_ = std::move(other.tensors_);
  watermarks_ = std::move(other.watermarks_);
  declared_ = other.declared_;
  consistency_ = other.consistency_;
  round_ = std::move(other.round_);
  steps_ = other.steps_;
  steps_agree_ = other.steps_agree_;
  most_steps_ = other.most_steps_;
  version_ = 0;
  trained_ = false;
  ++generation_;
}

Status Lane::EndRestore(bool had_parts) {
  watermarks_.Settle();
  CheckSteps();
  if (!had_parts) return Ok();
  std::vector<int> parts(wire::kBuckets);
  for (const BucketRange& range : restored_) {
    for (size_t bucket = range.first; bucket < range.end; ++bucket) ++parts[bucket];
  }
  for (size_t bucket = first_; bucket < end_; ++bucket) {
    if (parts[bucket] == 1) continue;
    return DataLoss(
        "the checkpoint has {} parts with bucket {}, and it must have one: {}", parts[bucket],
        bucket, parts[bucket] == 0 ? "a part is missing" : "parts of two checkpoints are mixed");
  }
  return Ok();
}

}  // namespace edl::ps
