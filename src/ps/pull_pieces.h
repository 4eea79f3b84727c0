#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/lane.h"
#include "wire/connection.h"

namespace edl::ps {

// The answer to a large pull, made in pieces between which a lane serves others. Rows are as they
// are when their piece is made: batches that were applied in between are in some and not in others,
// as they are between two lanes. Confined to the lane's loop.
class PullPieces final : public wire::Pieces {
 public:
  // A pull of more is answered in pieces of about so many bytes, a row at least.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // `lane`, and the ids of the plan, outlive it.
  PullPieces(const Lane& lane, Lane::PullPlan plan);

  size_t bytes() const override { return plan_.bytes; }
  size_t NextBytes() const override { return next_ < pieces_.size() ? pieces_[next_].bytes : 0; }
  bool WriteNext(std::byte* out) override;

 private:
  // Some rows of a table, or some blocks of a tensor.
  struct Part {
    size_t source = 0;  // in the plan's tables, and after them in its tensors
    size_t first = 0;
    size_t count = 0;
    size_t bytes = 0;  // with padding behind the last
  };
  struct Piece {
    size_t end = 0;  // of its parts
    size_t bytes = 0;
  };

  void Add(const Part& part);
  size_t Write(const Part& part, std::byte* out) const;

  const Lane& lane_;
  const uint64_t generation_;
  const Lane::PullPlan plan_;
  std::vector<Part> parts_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
};

}  // namespace edl::ps
