#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/lane.h"
#include "wire/frame_connection.h"

namespace edl::ps {

// The answer to a large pull, written in pieces, so that the lane can serve other requests in
// between. A row has its value from when its piece is written: a batch that is applied in between
// is in later pieces and not in earlier ones, as it can be between two lanes. Confined to the
// lane's loop.
class PullPieces final : public wire::Pieces {
 public:
  // The size of a piece, unless a single row is larger.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // `lane` and the ids that the plan refers to outlive the object.
  PullPieces(const Lane& lane, Lane::PullPlan plan);

  size_t bytes() const override { return plan_.bytes; }
  size_t NextBytes() const override { return next_ < pieces_.size() ? pieces_[next_].bytes : 0; }
  // False: the lane was restored meanwhile, so the rest of the answer does not exist any more.
  bool WriteNext(std::byte* out) override;

 private:
  // Consecutive rows of a table, or one block of a tensor.
  struct Part {
    size_t source = 0;  // the index in the plan's tables, followed by its tensors
    size_t first = 0;   // the first row of the pull, or the block
    size_t count = 0;
    size_t bytes = 0;  // including the padding after the last part of a source
  };
  struct Piece {
    size_t end = 0;  // one past the index of its last part
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
