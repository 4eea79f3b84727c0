#include "ps/pull_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace edl::ps {

PullPieces::PullPieces(const Lane& lane, Lane::PullPlan plan)
    : lane_(lane), generation_(lane.generation()), plan_(std::move(plan)) {
  for (size_t source = 0; source < plan_.tables.size(); ++source) {
    const auto& [table, ids] = plan_.tables[source];
    const size_t row_bytes = table->spec().dim * sizeof(float);
    const size_t rows = std::max<size_t>(kPieceBytes / row_bytes, 1);
    const size_t padded = wire::AlignedUp(ids.size() * row_bytes);
    for (size_t first = 0; first < ids.size(); first += rows) {
      const size_t count = std::min(rows, ids.size() - first);
      const bool is_last = first + count == ids.size();
      const size_t bytes = is_last ? padded - first * row_bytes : count * row_bytes;
      Add({.source = source, .first = first, .count = count, .bytes = bytes});
    }
  }
  for (size_t i = 0; i < plan_.tensors.size(); ++i) {
    const TensorBlocks& tensor = *plan_.tensors[i];
    const size_t padded = wire::AlignedUp(tensor.values() * sizeof(float));
    size_t done = 0;
    for (size_t block = 0; block < tensor.blocks().size(); ++block) {
      const bool is_last = block + 1 == tensor.blocks().size();
      const size_t bytes = is_last ? padded - done : tensor.blocks()[block].values * sizeof(float);
      Add({.source = plan_.tables.size() + i, .first = block, .count = 1, .bytes = bytes});
      done += bytes;
    }
  }
}

void PullPieces::Add(const Part& part) {
  if (part.bytes == 0) return;
  parts_.push_back(part);
  if (pieces_.empty() || pieces_.back().bytes + part.bytes > kPieceBytes) pieces_.emplace_back();
  pieces_.back().end = parts_.size();
  pieces_.back().bytes += part.bytes;
}

bool PullPieces::WriteNext(std::byte* out) {
  if (lane_.generation() != generation_) return false;
  size_t part = next_ == 0 ? 0 : pieces_[next_ - 1].end;
  for (; part < pieces_[next_].end; ++part) {
    const size_t written = Write(parts_[part], out);
    std::memset(out + written, 0, parts_[part].bytes - written);
    out += parts_[part].bytes;
  }
  ++next_;
  return true;
}

size_t PullPieces::Write(const Part& part, std::byte* out) const {
  auto* const values = reinterpret_cast<float*>(out);
  if (part.source >= plan_.tables.size()) {
    const TensorBlocks& tensor = *plan_.tensors[part.source - plan_.tables.size()];
    const TensorBlocks::Block& block = tensor.blocks()[part.first];
    std::memcpy(out, block.weights(), block.values * sizeof(float));
    return block.values * sizeof(float);
  }
  const auto& [table, ids] = plan_.tables[part.source];
  const bool make = plan_.unknown == wire::Pull::Unknown::kMake;
  table->Pull(ids.subspan(part.first, part.count),
              make ? Table::Unknown::kMake : Table::Unknown::kTell, values);
  return part.count * table->spec().dim * sizeof(float);
}

}  // namespace edl::ps
